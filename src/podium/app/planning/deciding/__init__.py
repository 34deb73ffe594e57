"""Questions that no run answers: decisions about many pods at once, under changes that are taken back."""
