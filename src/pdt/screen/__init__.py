"""The architecture screen: one factor at a time, sealed before anything trains.

Paper: §5.3, Appendix A.
"""
