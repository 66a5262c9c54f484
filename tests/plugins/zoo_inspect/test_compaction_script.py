"""Scripts and styles of pages without comments and spaces."""

from zoo_inspect.compaction import compact_script, compact_style


def test_strings_and_templates_stay():
    script = 'const a = "x , y";\nconst b = `${ a } =  ${a + "; "}`;\n'
    assert compact_script(script) == 'const a="x , y";const b=`${ a } =  ${a + "; "}`;'


def test_comments_are_removed_and_names_stay_apart():
    script = "/**\n * A function.\n */\n// Why.\nexport function f(a) {\n  return a in b;\n}\n"
    assert compact_script(script) == "export function f(a){return a in b}"


def test_signs_stay_apart():
    assert compact_script("x = a - -b + +c;") == "x=a - -b + +c;"
    assert compact_script("x = a - b + 0.5;") == "x=a-b+.5;"
    assert compact_script("x = a + (b - 1) + c[0];") == "x=a+(b-1)+c[0];"


def test_functions_and_constants_have_short_names():
    script = (
        "const MAX_NODES = 5;\nfunction shorten(text) {\n  return text.shorten(MAX_NODES);\n}\n"
        "export function main() {\n  return [...shorten(`${MAX_NODES}`), (a) => async (b) => a];\n"
        "}\n"
        'function keyed() {\n  return { keyed: 1, other: "keyed" };\n}\n'
    )
    assert compact_script(script) == (
        "const $2=5;function $0(text){return text.shorten($2)}"
        "export function main(){return[...$0(`${$2}`),a=>async(b)=>a]}"
        'function keyed(){return{keyed:1,other:"keyed"}}'
    )


def test_selectors_keep_their_spaces():
    style = ".a {\n  & :focus { margin: 0 1px; }\n  .b .c { top: 0; }\n}\n"
    assert compact_style(style) == ".a{& :focus{margin:0 1px}.b .c{top:0}}"
