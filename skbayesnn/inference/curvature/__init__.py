"""Curvature: Hessians in dense, dual and Kronecker-factored form, and the choice among them."""
