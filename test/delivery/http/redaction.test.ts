import { assert, describe, it } from "@effect/vitest"
import { keptResult, redacted, secretsOf } from "../../../src/delivery/http/kept-answer.ts"

const nothing = { ownHeaders: [], signature: undefined, secrets: [], path: "/" }

describe("the secrets of a request", () => {
  it("are the values of own headers, and the credentials in them", () => {
    const login = Buffer.from("petrel:open sesame").toString("base64")
    const found = secretsOf({
      ...nothing,
      ownHeaders: [
        ...["authorization", `Basic ${login}`],
        ...["x-auth", "Bearer tok_0123456789"],
        ...["cookie", "session=0a1b2c3d4e; theme=dark"],
        ...["accept", "application/json"],
        ...["x-login", "Scheme abc123"],
        ...["x-version", "3"]
      ]
    })
    assert.deepStrictEqual(found, [
      ...["petrel:open sesame", "open sesame", login],
      ...["tok_0123456789"],
      ...["session=0a1b2c3d4e; theme=dark", "0a1b2c3d4e"],
      ...["Scheme abc123", "abc123"],
      // Too short to be looked for.
      "3"
    ])
  })

  it("are the signatures of each scheme, without what stands before them", () => {
    const of = (signature: string) => secretsOf({ ...nothing, signature })
    assert.deepStrictEqual(of("v1,abc+/def= v1,0123456="), ["abc+/def=", "0123456="])
    assert.deepStrictEqual(of("v1a,abc+/def=="), ["abc+/def=="])
    assert.deepStrictEqual(of("t=1795375617,v1=00ff00ff,v1=11ee11ee"), ["00ff00ff", "11ee11ee"])
    assert.deepStrictEqual(of("sha256=00ff00ff"), ["00ff00ff"])
  })

  it("are the signing secrets, and values in the query of the URL", () => {
    const found = secretsOf({
      ...nothing,
      secrets: [{ value: "whsec_AAAAbbbb" }],
      path: "/hooks?token=t%2Fken%2B123&page=1"
    })
    assert.deepStrictEqual(found, ["whsec_AAAAbbbb", "AAAAbbbb", "t/ken+123"])
  })
})

describe("an answer", () => {
  const secret = 'pa"ss\\wo/rdé&9'
  const ways: Record<string, string> = {
    "as it is": secret,
    JSON: JSON.stringify(secret).slice(1, -1),
    "JSON with slashes escaped": JSON.stringify(secret).slice(1, -1).replaceAll("/", "\\/"),
    "JSON in ASCII": JSON.stringify(secret).slice(1, -1).replaceAll("é", "\\u00e9"),
    "JSON in JSON": JSON.stringify(JSON.stringify(secret)).slice(3, -3),
    "JSON that is careful": secret.replaceAll(
      /\W/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}`
    ),
    "a URL": encodeURIComponent(secret),
    HTML: secret.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("/", "&#x2F;")
  }
  for (const [way, text] of Object.entries(ways))
    it(`is kept without a secret that it repeats: ${way}`, () => {
      assert.strictEqual(
        redacted(`before ${text} & after ${text}.`, [secret]),
        "before [redacted] & after [redacted]."
      )
    })

  it("is kept without the beginning of a secret, wherever it is cut", () => {
    for (const text of Object.values(ways))
      for (let length = 1; length <= text.length; length++) {
        const left = redacted(`it said ${text.slice(0, length)}`, [secret])
        assert.match(
          left,
          /^it said (?:\[redacted\]|.{1,2}|pa(?:\\|%|&|\\\\).{0,5})$/,
          `cut ${text.slice(0, length)}`
        )
      }
    assert.strictEqual(
      redacted("no such key key-0123…", ["key-0123456"]),
      "no such key [redacted]…"
    )
  })

  it("is left as it is where it repeats nothing", () => {
    const text = '{"error":"wrong \\"key\\"","at":"100%","see":"/a&b"}'
    assert.strictEqual(redacted(text, [secret, "0123456789"]), text)
    assert.strictEqual(redacted("", [secret]), "")
    assert.strictEqual(redacted("version 3 of 3", ["3"]), "version 3 of 3")
  })

  it("is kept without secrets that lie beside or in each other", () => {
    assert.strictEqual(redacted("abcdefgh12345678", ["abcdefgh", "12345678"]), "[redacted]")
    assert.strictEqual(
      redacted("x user:password y", ["user:password", "password"]),
      "x [redacted] y"
    )
  })
})

describe("what is kept of a redirect that is not followed", () => {
  const result = {
    status: 302,
    durationMs: 1,
    error: { class: "redirect", message: "a redirect to http://h/key-0123456/in" },
    response: { headers: { location: "http://h/key-0123456/in" }, body: "", bytes: 0 }
  } as const

  it("says where it leads without the request's secrets, and only where answers are kept", () => {
    const kept = keptResult(result, "body", () => ["key-0123456"])
    assert.strictEqual(kept.error?.message, "a redirect to http://h/[redacted]/in")
    assert.strictEqual(kept.response?.headers.location, "http://h/[redacted]/in")
    assert.notInclude(JSON.stringify(keptResult(result, "status", () => [])), "http")
  })
})
