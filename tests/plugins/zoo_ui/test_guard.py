"""Requests for other hosts, from other origins and without the token are refused."""

import json

import pytest


def _headers(server, **more):
    """The headers that a page of the server sends."""
    return {
        "Host": f"127.0.0.1:{server.port}",
        "Origin": f"http://127.0.0.1:{server.port}",
        "Cookie": f"zoo-ui-{server.port}={server.token}",
        **more,
    }


PARSE = {"text": "a: 1"}


def test_a_page_of_the_server_is_answered(server):
    status, _, content = server.send("POST", "/api/parse", _headers(server), PARSE)
    assert status == 200
    assert json.loads(content) == {"ok": True, "data": {"a": 1}}
    headers = _headers(server, Host=f"localhost:{server.port}")
    headers["Origin"] = f"http://localhost:{server.port}"
    assert server.send("POST", "/api/parse", headers, PARSE)[0] == 200


@pytest.mark.parametrize(
    "host",
    ["attacker.example", "127.0.0.1", "127.0.0.1.attacker.example:{port}", "[::1]:{port}", ""],
)
def test_other_hosts_are_refused_also_with_the_token(server, host):
    host = host.format(port=server.port)
    for path in ("/", f"/?token={server.token}", "/api/registry", "/static/main.js"):
        status, _, content = server.send("GET", path, _headers(server, Host=host))
        assert (status, b"127.0.0.1 and localhost only" in content) == (403, True)


@pytest.mark.parametrize(
    "origin", ["http://attacker.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_other_origins_are_refused_also_with_the_cookie(server, origin):
    headers = _headers(server, Origin=origin.format(port=server.port))
    for method, path in (("POST", "/api/parse"), ("GET", "/api/registry")):
        status, _, content = server.send(method, path, headers, PARSE)
        assert (status, b"its own pages only" in content) == (403, True)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_another_page_causes_are_refused(server, site):
    headers = _headers(server, **{"Sec-Fetch-Site": site})
    del headers["Origin"]
    assert server.send("GET", "/api/registry", headers)[0] == 403


def test_a_post_without_an_origin_needs_the_token_in_a_header(server):
    headers = _headers(server)
    del headers["Origin"]
    assert server.send("POST", "/api/parse", headers, PARSE)[0] == 403
    headers = {"Authorization": f"Bearer {server.token}"}
    assert server.send("POST", "/api/parse", headers, PARSE)[0] == 200


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_requests_without_the_token_are_refused(server, token):
    cookie = f"zoo-ui-{server.port}={token}".encode().decode("latin-1")
    for path in ("/", "/api/registry", "/static/main.js", "/view/0", "/absent"):
        status, _, content = server.send("GET", path, _headers(server, Cookie=cookie))
        assert (status, b"the address that 'zoo ui' printed" in content) == (403, True)
    assert server.send("GET", "/?token=wrong")[0] == 403


def test_the_token_in_the_address_becomes_a_cookie_that_other_sites_do_not_send(server):
    status, headers, _ = server.send("GET", f"/?token={server.token}")
    assert (status, headers["location"]) == (303, "/")
    assert headers["set-cookie"].startswith(f"zoo-ui-{server.port}={server.token}; HttpOnly;")
    assert "SameSite=strict" in headers["set-cookie"]


def test_every_response_has_a_strict_content_policy(server):
    for path in ("/", "/static/main.js", "/api/registry", "/absent"):
        _, headers, _ = server.send("GET", path, _headers(server))
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"
    refused = server.send("GET", "/")[1]
    assert "content-security-policy" in refused


# Cookies of other servers of the machine, of which some are not valid by RFC 6265.
OTHERS = [
    "a=1",
    "a",
    "=a",
    "a b=c",
    "a=b,c",
    'a={"x": 1}',
    'a="b',
    "a[0]=1",
    "a@b=c",
    "a=é",
    "a=b;;",
    "path=/",
    "httponly",
    "$Version=1",
    "zoo-ui-1=other",
    "a=b=c",
]


@pytest.mark.parametrize("other", OTHERS)
def test_cookies_of_other_servers_do_not_hide_that_of_this_one(server, other):
    own = f"zoo-ui-{server.port}={server.token}"
    for cookies in (f"{other}; {own}", f"{own}; {other}", f"{other};{own};{other}"):
        sent = cookies.encode().decode("latin-1")
        status, _, content = server.send("POST", "/api/parse", _headers(server, Cookie=sent), PARSE)
        assert status == 200, (cookies, content)


def test_a_cookie_whose_name_or_value_contains_the_own_one_is_refused(server):
    own = f"zoo-ui-{server.port}={server.token}"
    for cookies in (f"a={own}", f"{own}a", f"a{own}", own.replace("=", "==")):
        headers = _headers(server, Cookie=cookies)
        assert server.send("POST", "/api/parse", headers, PARSE)[0] == 403


def test_very_many_cookies_of_other_servers_are_no_error(server):
    own = f"zoo-ui-{server.port}={server.token}"
    others = "; ".join(f"name-{number}={'x' * 1000}" for number in range(100))
    headers = _headers(server, Cookie=f"{others}; {own}")
    assert server.send("POST", "/api/parse", headers, PARSE)[0] == 200
