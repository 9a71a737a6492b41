"""The looks of the page, in light, in dark, and on paper."""

CSS = """
:root {
  color-scheme: light dark;
  --page: #fff; --ink: #1b1f24; --quiet: #55606b; --rule: #d5dae0; --soft: #f4f6f8; --warn: #8a4b00;
  --c0: #0072b2; --c1: #b84a00; --c2: #00795a; --c3: #a3487f; --c4: #7a5c00; --c5: #3d4650; --heat: 0, 114, 178;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161b; --ink: #e9edf1; --quiet: #a3adb8; --rule: #39424d; --soft: #1b2128; --warn: #f0b36a;
    --c0: #56b4e9; --c1: #f0883e; --c2: #3dd6a5; --c3: #e6a3cb; --c4: #e6c84a; --c5: #d5dae0; --heat: 86, 180, 233;
  }
}
@media print {
  :root {
    color-scheme: light;
    --page: #fff; --ink: #000; --quiet: #444; --rule: #bbb; --soft: #fff; --warn: #000;
    --c0: #0072b2; --c1: #b84a00; --c2: #00795a; --c3: #a3487f; --c4: #7a5c00; --c5: #3d4650; --heat: 0, 114, 178;
  }
  details { display: none; }
  .scroll { overflow: visible !important; }
  * { print-color-adjust: exact; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main, header.page, footer { max-width: 1200px; margin: 0 auto; padding: 0 16px; }
h1, h2, h3, h4 { break-after: avoid; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 24px 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 36px 0 8px; padding-top: 12px; border-top: 2px solid var(--rule);
     overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 24px 0 8px; overflow-wrap: anywhere; }
p { margin: 6px 0; max-width: 75ch; overflow-wrap: anywhere; }
a { color: var(--c0); }
.quiet, .note, figcaption span { color: var(--quiet); }
.note { font-size: .875rem; }
.warn { border-left: 4px solid var(--warn); padding: 4px 12px; background: var(--soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 20px;
           align-items: start; }
figure { margin: 0; padding: 12px; background: var(--soft); border: 1px solid var(--rule); border-radius: 8px;
         min-width: 0; max-width: 560px; break-inside: avoid; }
figure.wide { max-width: 100%; width: fit-content; grid-column: 1 / -1; }
figcaption { font-size: .9375rem; margin-bottom: 6px; overflow-wrap: anywhere; }
figcaption span { font-size: .875rem; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .tick { fill: var(--quiet); font-size: 11px; }
svg .label { fill: var(--quiet); }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
.grid { stroke: var(--rule); stroke-width: 1; }
.axis { stroke: var(--quiet); stroke-width: 1; }
.diagonal { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 4; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); } .line.c2 { stroke: var(--c2); }
.line.c3 { stroke: var(--c3); } .line.c4 { stroke: var(--c4); } .line.c5 { stroke: var(--c5); }
.bar.c0, .dot.c0 { fill: var(--c0); } .bar.c1, .dot.c1 { fill: var(--c1); } .dot.c2 { fill: var(--c2); }
.dot.c3 { fill: var(--c3); } .dot.c4 { fill: var(--c4); } .dot.c5 { fill: var(--c5); }
.point { fill-opacity: .45; stroke-width: 1; }
.point.c0 { fill: var(--c0); stroke: var(--c0); } .point.c1 { fill: var(--c1); stroke: var(--c1); }
.point.c2 { fill: var(--c2); stroke: var(--c2); } .point.c3 { fill: var(--c3); stroke: var(--c3); }
.point.c4 { fill: var(--c4); stroke: var(--c4); } .point.c5 { fill: var(--c5); stroke: var(--c5); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 6px 0 0; padding: 0;
          font-size: .875rem; overflow-wrap: anywhere; }
.legend li { display: flex; align-items: center; gap: 6px; min-width: 0; }
.swatch { width: 28px; flex: none; }
.scroll { overflow-x: auto; max-width: 100%; margin: 8px 0; }
.scroll:focus-visible { outline: 2px solid var(--c0); }
table { border-collapse: collapse; font-size: .9375rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--rule); }
thead th { color: var(--quiet); font-weight: 600; }
tbody th { font-weight: 500; }
.n { text-align: right; }
th, td { max-width: 24rem; overflow-wrap: break-word; }
td.n { white-space: nowrap; }
thead th { vertical-align: bottom; }
.confusion td, .confusion th { padding: 4px 10px; text-align: right; border: 1px solid var(--rule); }
.confusion td { background: rgba(var(--heat), calc(var(--share) * .55)); white-space: nowrap; }
.confusion th[colspan] { text-align: left; }
.confusion thead th, .confusion tbody th { max-width: 9rem; }
details { margin-top: 8px; font-size: .875rem; }
summary { cursor: pointer; color: var(--quiet); padding: 4px 0; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: 2px 16px; margin: 8px 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
dl.settings { display: block; columns: 17rem; }
dl.settings div { display: flex; justify-content: space-between; gap: 16px; padding: 2px 0; break-inside: avoid;
                  border-bottom: 1px solid var(--rule); }
dl.settings dd { text-align: right; }
h4 { font-size: 1rem; margin: 16px 0 4px; }
dl.settings { display: block; columns: 17rem; }
dl.settings div { display: flex; justify-content: space-between; gap: 16px; padding: 2px 0; break-inside: avoid;
                  border-bottom: 1px solid var(--rule); }
dl.settings dd { text-align: right; }
h4 { font-size: 1rem; margin: 16px 0 4px; }
footer { margin: 40px auto 24px; color: var(--quiet); font-size: .875rem; }
"""
