"""Every category of the systems replaced is covered: Megatron's blacklist_urls.py, and the filters
of the two openwebtext downloaders. For each category, names and endings that they have."""

import pytest

from web2gpt.urls.domain_lists import built_in_names, load_lists
from web2gpt.urls.rules import load_extensions

DOMAINS = {
    "images and animations": ("images", "500px.com flickr.com gfycat.com giphy.com gyazo.com "
                              "imageshack.us imgflip.com imgur.com minus.com photobucket.com "
                              "pbs.twimg.com puu.sh sli.mg tinypic.com magaimg.net"),
    "video": ("video", "youtube.com youtu.be www.youtube-nocookie.com vimeo.com dailymotion.com "
              "liveleak.com streamable.com twitch.tv vine.co vid.me youtubedoubler.com"),
    "music": ("audio", "bandcamp.com reverb.com soundcloud.com soundgasm.net spotify.com "
              "vocaroo.com touhouradio.com"),
    "social networks": ("social", "facebook.com instagram.com twitter.com tumblr.com pinterest.com "
                        "discord.gg discordapp.com"),
    "Reddit and its family": ("reddit", "reddit.com redd.it redditlog.com redditmedia.com "
                              "reddituploads.com radd.it reddit-stream.com karmadecay.com"),
    "memes": ("memes", "explosm.net livememe.com memegenerator.net qkme.me quickmeme.com xkcd.com"),
    "adult sites": ("adult", "e621.net erome.com eroshare.com furaffinity.net imagefap.com "
                    "pornhub.com redtube.com spankbang.com xhamster.com xvideos.com"),
    "art": ("art", "artstation.com deviantart.com pixiv.net"),
    "shops for applications": ("apps", "play.google.com itunes.apple.com aapks.com apkmirror.com"),
    "files in a cloud": ("files", "dropbox.com drive.google.com mega.nz mediafire.com"),
    "shops and products": ("shops", "amazon.com www.amazon.co.uk ebay.de walmart.com "
                           "pcpartpicker.com edealinfo.com gunprime.com"),
    "technology companies": ("companies", "google.com apple.com lmgtfy.com"),
    "software": ("code", "github.com gitlab.com sourceforge.net"),
    "wikis": ("wikis", "en.wikipedia.org commons.wikimedia.org"),
    "short links": ("shorteners", "bit.ly goo.gl tinyurl.com"),
    "delivery networks": ("delivery", "scontent.fbcdn.net i.pinimg.com i.ytimg.com "
                          "a.akamaized.net"),
    "crypto-currencies": ("crypto", "coinscalendar.com kryptocal.com coinmarketcap.com"),
    "games and polls": ("games", "strawpoll.me mobafire.com futhead.com"),
    "news and others that cannot be scraped": ("guarded", "rollingstone.com roanoke.com "
                                               "timeanddate.com spotrac.com wciu.com"),
    "petitions": ("petitions", "change.org battleforthenet.com"),
}  # fmt: skip
EXTENSIONS = {
    "documents": "doc docx pdf pps ppt pptx xls xlsx",
    "archives and disk images": "7z bz2 dmg gz iso rar tar tgz xz zip",
    "images": "ai bmp gif gifv jpeg jpg png psd svg tiff",
    "sound": "aif mid midi mp3 ogg ram wav wma",
    "video": "3gp avi mkv mov mp4 mpeg mpg ogv qt webm wmv",
    "code, styles, data and logs": "css csv dat js log py sql swf txt xml",
    "programs and packages": "apk app bin deb exe jar pkg",
    "fonts": "otf ttf",
}


@pytest.mark.parametrize(("theme", "hosts"), DOMAINS.values(), ids=DOMAINS)
def test_every_category_of_domains_is_covered(theme: str, hosts: str) -> None:
    lists = load_lists((), (), ())
    assert [host for host in hosts.split() if lists.listed_in(host) is None] == []
    assert theme in {lists.listed_in(host) for host in hosts.split()}


def test_every_built_in_list_belongs_to_a_category() -> None:
    assert {theme for theme, _ in DOMAINS.values()} == set(built_in_names())


@pytest.mark.parametrize("endings", EXTENSIONS.values(), ids=EXTENSIONS)
def test_every_category_of_extensions_is_covered(endings: str) -> None:
    assert set(endings.split()) <= load_extensions()


def test_what_forgotten_commas_let_through_is_covered() -> None:
    """``.7z`` ran together with ``.ai``, and spotrac.com with wikipedia.org."""
    assert {"7z", "ai"} <= load_extensions()
    lists = load_lists((), (), ())
    assert lists.listed_in("www.spotrac.com") and lists.listed_in("de.wikipedia.org")
