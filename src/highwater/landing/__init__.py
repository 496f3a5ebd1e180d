"""From the landing folder into raw: what was delivered, what of it is new, and the newest landing of each feed."""
