"""Every code block of README.md and docs/**/*.md is executed or checked.

How to write a block (fenced with three backticks and a language; indented blocks are refused):

bash      Every line is checked: `tfstudy ...` by the parser of the app (commands, options, names of tasks, architectures,
          presets and grids; settings of `run` and `config` are resolved), `make TARGET`, extras of `pip install
          'tfstudy[EXTRA]'`. Words in capitals (RUN, STUDY, DIR, FILE.csv, HOST:PORT) stand for what the reader puts there.
          With `<!-- run -->` on the line before it (a blank line between them is fine) the block is executed; exit code 0
          is expected, or `<!-- run: exit code 2 -->` of its last command. Trainings take 4 steps there. Lines with
          pipes, redirections or other programs than tfstudy are executed by bash.
python    Executed. `max_epochs=1` is replaced by 2 steps; trainings by `tfstudy.run` take 4.
yaml      Parsed; validated if it is a grid, presets, claims or sections of a config. A workflow is only parsed.
text, console, csv, json, toml, bibtex, html, mermaid, dockerfile
          Not executed: outputs and files. json and toml are parsed.

Blocks with a file name, such as ```yaml title="grid.yaml" or ```python title="reverse.py", are not executed but written
to that file, where the executed blocks after them find it. The executed blocks of a page share one temporary working
folder, with a copy of the committed results in `results/`, and one namespace of Python, in the order of the page.

`<!-- not run: REASON -->` before a block of bash or python exempts it from execution and from the checks of values, for
example because it needs a GPU, a cluster or the network. Exempted blocks are counted.
"""
