"""What chance has a say in: decisions of a plan that could have come out otherwise, and what would follow."""
