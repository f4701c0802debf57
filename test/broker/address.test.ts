import { assert, describe, it } from "@effect/vitest"
import { readAddress, shownAddress, withoutLogin } from "../../src/broker/address.ts"

interface Row {
  readonly text: string
  readonly shown: string
  /** Undefined where it is no address. */
  readonly read?: {
    readonly servers: ReadonlyArray<string>
    readonly login?: object
    readonly tls?: true
  }
}

const one = ["h:4222"]

const table: ReadonlyArray<Row> = [
  { text: "h:4222", shown: "h:4222", read: { servers: one } },
  { text: "nats://h", shown: "nats://h", read: { servers: ["h"] } },
  { text: "tls://h:4222/", shown: "tls://h:4222/", read: { servers: one, tls: true } },
  { text: "nats://[::1]:4222", shown: "nats://[::1]:4222", read: { servers: ["[::1]:4222"] } },
  {
    text: "nats://a:1, nats://b:2,c",
    shown: "nats://a:1,nats://b:2,c",
    read: { servers: ["a:1", "b:2", "c"] }
  },
  {
    text: "nats://token@h:4222",
    shown: "nats://h:4222",
    read: { servers: one, login: { token: "token" } }
  },
  ...[
    "pw",
    "p/w",
    "p,w",
    "p@w",
    "p:w",
    "p#w?x",
    "nats://x",
    "a@b:1,c@d",
    "50%",
    "p w",
    "[::1]:42"
  ].map((pass) => ({
    text: `nats://user:${pass}@h:4222`,
    shown: "nats://h:4222",
    read: { servers: one, login: { user: "user", pass } }
  })),
  ...["pw", "p/w", "p,w", "p@w", "a@b:1,c"].map((pass) => ({
    text: `user:${pass}@h:4222`,
    shown: "h:4222",
    read: { servers: one, login: { user: "user", pass } }
  })),
  {
    text: "nats://us%20er:p%40s%2Fs@h:4222",
    shown: "nats://h:4222",
    read: { servers: one, login: { user: "us er", pass: "p@s/s" } }
  },
  {
    text: "nats://u:a,b@a:1,nats://u:a,b@b:2",
    shown: "nats://a:1,nats://b:2",
    read: { servers: ["a:1", "b:2"], login: { user: "u", pass: "a,b" } }
  },
  {
    text: "nats://u:p@a:1,b:2",
    shown: "nats://a:1,b:2",
    read: { servers: ["a:1", "b:2"], login: { user: "u", pass: "p" } }
  },
  { text: "http://user:secret@h", shown: "http://h" },
  {
    text: "nats:user:secret@h",
    shown: "h",
    read: { servers: ["h"], login: { user: "nats", pass: "user:secret" } }
  },
  { text: "nats://user:secret@", shown: "nats://" },
  { text: "user:secret", shown: "…" },
  { text: "user:sec,ret", shown: "…" },
  { text: "nats://user:secret%40h:4222", shown: "nats://…" },
  { text: "nats://h:99999", shown: "nats://h:99999" },
  { text: "garbage://x", shown: "garbage://x" },
  { text: "", shown: "" }
]

describe("an address of the broker", () => {
  for (const { read, shown, text } of table)
    it(`is read, and shown without what is secret: ${text}`, () => {
      const found = readAddress(text)
      assert.strictEqual(shownAddress(text), shown)
      assert.deepStrictEqual(
        found,
        read === undefined ? undefined : { tls: false, login: undefined, ...read }
      )
    })

  it("is left out of what others say about it, and so is its password", () => {
    const url = "nats://user:p%40ss/word@h:4222"
    assert.strictEqual(
      withoutLogin(`Invalid URL: ${url} ("p@ss/word", "p%40ss/word")`, url),
      'Invalid URL: nats://h:4222 ("********", "********")'
    )
  })
})
