"""The Japanese dictionary of bunko, for MeCab: UniDic 2.1.2 with what bunko reads of it."""

from pathlib import Path

FOLDER = Path(__file__).parent
