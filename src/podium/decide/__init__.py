"""Pure choices: a view of the cluster goes in, a plan comes out; nothing is carried out here."""
