"""URL forms, character sets and HTML: what several data stages share."""
