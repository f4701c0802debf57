import { assert, describe, it } from "@effect/vitest"
import { redirectLines, responseLines, shortResponseLines } from "../../../src/cli/format/answer.ts"
import type { Response } from "../../../src/domain/outcome.ts"

const width = 76

const answer = (
  body: string,
  headers: Response["headers"] = {},
  bytes = body.length
): Response => ({
  body,
  bytes,
  headers
})

describe("an answer in short", () => {
  it.each([
    ["nothing where there is nothing to say", answer("", { date: "today" }), []],
    ["its body", answer("no such account\n"), ["no such account"]],
    [
      "when it may be sent again, and where it leads to",
      answer("", { date: "today", "retry-after": "20", location: "/login" }),
      ["retry-after: 20", "location: /login"]
    ],
    ["three lines of a body", answer("a\n\nb\nc\nd\ne"), ["a", "b", "c", "…"]],
    ["how long the body was", answer("abc", {}, 4_096), ["abc", "(of 4 KiB)"]],
    ["no control character", answer("\u001b[2Jx\r\ny"), ["\\u001b[2Jx\\u000d", "y"]]
  ])("has %s", (_, given, expected) => {
    assert.deepStrictEqual(shortResponseLines(given, width), expected)
  })

  it("fits into the width, also without a space", () => {
    const lines = shortResponseLines(
      answer("x".repeat(1_024), { location: "y".repeat(200) }),
      width
    )
    assert.isTrue(lines.every((line) => line.length <= width))
    assert.strictEqual(lines.at(-1), "…")
    assert.lengthOf(lines, 8)
  })
})

describe("an answer as it is kept", () => {
  it("has all headers, the whole body, and its size", () => {
    const given = answer("a\nb\nc\nd\u0007", { date: "to\u0007day", via: "proxy" }, 2_048)
    assert.deepStrictEqual(responseLines(given), [
      ...["date: to day", "via: proxy", "", "a", "b", "c", "d\\u0007", "(of 2 KiB)"]
    ])
    assert.deepStrictEqual(responseLines(answer("")), ["", "(empty)"])
  })

  it("is preceded by the redirects that led to it", () => {
    const redirects = [{ status: 302, to: "https://a.example/\u0007login" }]
    assert.deepStrictEqual(redirectLines(redirects), [
      "status 302, redirected to https://a.example/ login"
    ])
    assert.deepStrictEqual(redirectLines(undefined), [])
  })
})
