"""A small ARPA file over the labels 1 and 2."""

ARPA = """\
some comment

\\data\\
ngram 1=5
ngram 2=5
ngram 3=1

\\1-grams:
-0.7 <unk>
-99 <s> -0.3
-0.6 </s>
-0.4 1 -0.2
-0.8 2 -0.1

\\2-grams:
-0.2 <s> 1 -0.15
-0.9 1 2
-0.5 2 1
-0.3 2 </s>
-0.05 <unk> 2

\\3-grams:
-0.1 <s> 1 </s>

\\end\\
"""
