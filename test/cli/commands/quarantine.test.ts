import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { quarantine } from "../../../src/intake/quarantine.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const place = installations()

const put = (body: string, reason: "unreadable" | "invalid" = "unreadable") =>
  quarantine(
    "acme",
    {
      ...{ source: "stripe", provider: "stripe", problem: "no JSON", contentType: "text/plain" },
      ...{ headers: { "x-hubspot-request-timestamp": "1795992881337" }, method: "POST" },
      ...{ url: "http://127.0.0.1/in/acme/stripe", reason }
    },
    Buffer.from(body)
  )

describe("petrel quarantine", () => {
  it.live("releases and discards several by their numbers, or by what they have in common", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("quarantine", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        for (const body of ["one", "two", "three", "four"]) yield* put(body)
        yield* put("five", "invalid")
        const numbers = Effect.map(petrel("list", "acme", "--json"), ({ out }) =>
          out.map((line) => String(parse(line).number))
        )
        const [one = "", two = "", three = "", four = ""] = yield* numbers

        for (const [args, problem] of [
          [["release", "acme"], /name them by their numbers/],
          [["release", "acme", "--all", "--source", "stripe"], /--all cannot be combined/],
          [["discard", "acme", "--source", "a.b"], /--source/],
          [["discard", "acme", "--all"], /add --yes/]
        ] as const) {
          const refused = yield* petrel(...args)
          assert.match(refused.err.join(), problem)
          assert.notStrictEqual(refused.code, 0)
        }
        const unread = yield* petrel("release", "acme", one, two)
        assert.strictEqual(unread.code, 1)
        assert.match(unread.err.join(), /2 left as they are: .*give it a type/)
        const released = yield* petrel("release", "acme", one, two, "--type", "thing/unknown")
        assert.deepStrictEqual(released.out, [
          `${one} is 1 event now: stripe.thing_x2F_unknown`,
          `${two} is 1 event now: stripe.thing_x2F_unknown`,
          "2 released"
        ])
        const shown = yield* petrel("show", "acme", three)
        assert.include(shown.out.join("\n"), "x-hubspot-request-timestamp  1795992881337")
        const gone = yield* petrel("discard", "acme", one, three)
        assert.strictEqual(gone.code, 1)
        assert.match(gone.err.join(), new RegExp(`1 left as it is: .*no ${one} in quarantine`))
        assert.deepStrictEqual(gone.out, ["1 of acme discarded"])
        const byReason = yield* petrel(
          "discard",
          "acme",
          "--reason",
          "unreadable",
          "--yes",
          "--json"
        )
        const { discarded } = parse(byReason.out.join())
        assert.deepStrictEqual(
          (discarded as ReadonlyArray<{ readonly number: number }>).map(({ number }) =>
            String(number)
          ),
          [four]
        )
        assert.lengthOf(yield* numbers, 1)
        const all = yield* petrel("discard", "acme", "--all", "--yes")
        assert.strictEqual(all.code, 0, all.err.join())
        assert.lengthOf(yield* numbers, 0)
      })
    )
  })
})
