"""The finite, delayed channel between lanes (§3.5): 32 bits a lane and block, one block late."""
