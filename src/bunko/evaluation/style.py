"""The style sheet of the HTML reports, light and dark."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #667085; --paper: #fbfaf7; --card: #fff; --line: #e3e0d8;
  --win: #1a8f5f; --loss: #c8503c; --c0: #2f6fb7; --c1: #d9822b; --c2: #5b9a5b; --c3: #8a5fb0; --c4: #b0486e;
  --c5: #4a9aa5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e6e1; --soft: #9aa3b2; --paper: #14171c; --card: #1d2128;
  --line: #333a45; --win: #4cc38a; --loss: #ee7a63; --c0: #6ea8e6; --c1: #f0a85c; --c2: #86c786; --c3: #b895dc;
  --c4: #e0829f; --c5: #7cc7d1; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.6 system-ui, "Hiragino Sans", "Noto Sans CJK JP", "Yu Gothic UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; } p { margin: .25rem 0 .75rem; }
.soft-text, .facts { color: var(--soft); }
section, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.25rem;
  margin: .75rem 0; overflow-x: auto; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.numbers div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .75rem 1rem; }
.numbers b { display: block; font-size: 1.6rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.numbers span { color: var(--soft); font-size: .85rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 600; }
tbody tr:last-child td { border-bottom: 0; }
svg { width: 100%; height: auto; display: block; } svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.range { stroke: var(--ink); stroke-width: 1.2; fill: none; }
.win { fill: var(--win); } .loss { fill: var(--loss); } .soft { fill-opacity: .55; }
rect.c0 { fill: var(--c0); } rect.c1 { fill: var(--c1); } rect.c2 { fill: var(--c2); } rect.c3 { fill: var(--c3); }
rect.c4 { fill: var(--c4); } rect.c5 { fill: var(--c5); }
i.c0 { background: var(--c0); } i.c1 { background: var(--c1); } i.c2 { background: var(--c2); }
i.c3 { background: var(--c3); } i.c4 { background: var(--c4); } i.c5 { background: var(--c5); }
i.win { background: var(--win); } i.loss { background: var(--loss); }
.legend span { margin-right: 1.25rem; }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  margin-right: .4em; vertical-align: -.05em; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: .4rem 0; }
summary { cursor: pointer; padding: .55rem .9rem; display: flex; gap: .75rem; align-items: baseline; }
summary span:first-child { flex: 1; } details[open] summary { border-bottom: 1px solid var(--line); }
details > div { padding: .5rem .9rem .9rem; } .up { color: var(--win); } .down { color: var(--loss); }
.tag { border: 1px solid var(--line); border-radius: 99px; padding: 0 .55em; font-size: .78rem; color: var(--soft); }
ol, ul { margin: .25rem 0; padding-left: 1.6rem; } li { margin: .3rem 0; overflow-wrap: anywhere; }
li.right::marker { color: var(--win); font-weight: 700; } li.right b { color: var(--win); }
li blockquote { margin: .1rem 0 0; color: var(--soft); font-size: .87rem; }
.verdict { border-left: 5px solid var(--win); } .verdict.bad { border-left-color: var(--loss); }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
"""
