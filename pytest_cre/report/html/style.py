"""How the page looks, and what a browser may do with it: nothing but show it."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
h3 { font-size: 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #8886; padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; }
.number { text-align: right; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content auto; gap: .1rem 1rem; }
dd { margin: 0; overflow-wrap: anywhere; }
details { border: 1px solid #8886; border-radius: .3rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { overflow: auto; max-height: 32rem; font-size: 13px; }
.note { border: 2px solid #b8860b; font-weight: bold; padding: .5rem .8rem; }
.verdict { border-radius: .2rem; font-weight: bold; padding: .05rem .4rem; background: #8883; }
.pass, .passed { background: #2a7d2a; color: #fff; }
.fail, .failed, .error { background: #b32020; color: #fff; }
.inconclusive, .incomplete { background: #8a6100; color: #fff; }
"""
