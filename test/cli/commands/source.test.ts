import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../../src/broker/clients.ts"
import { history, nth } from "../../kit/engine.ts"
import { installations, parse } from "../command-line.ts"
import { run, runWith } from "../in-process.ts"

const place = installations()

describe("petrel source", () => {
  it.live("adds, changes, rotates, shows and removes what comes in", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("source", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const facts = yield* history
        assert.match(nth((yield* petrel("list")).err, 0), /There are no sources/)
        const added = yield* runWith(
          "whsec_one\n",
          ...["source", "add", "acme/stripe", "--provider", "stripe", "--secret", "-", ...flags]
        )
        assert.deepStrictEqual(added.out, [
          "acme/stripe is added: let stripe post to /in/acme/stripe of a gateway (`petrel ingest`)"
        ])
        const again = yield* petrel("add", "acme/stripe", "--provider", "stripe", "--secret", "x")
        assert.match(again.err.join(), /there is a source acme\/stripe already/)
        yield* petrel("set", "acme/stripe", "--rate", "200/s", "--by", "ana")
        const rotated = yield* runWith(
          "whsec_two",
          ...["source", "rotate", "acme/stripe", "--secret", "-", "--keep-old", "1h", ...flags]
        )
        assert.deepStrictEqual(rotated.out, [
          "acme/stripe has a new secret; the old one verifies for 1 h more"
        ])
        const shown = parse(nth((yield* petrel("show", "acme/stripe", "--json")).out, 0))
        assert.deepInclude(shown, { tenant: "acme", id: "stripe", path: "/in/acme/stripe" })
        assert.notInclude(JSON.stringify(shown), "whsec_")
        assert.lengthOf(shown.secrets as ReadonlyArray<unknown>, 2)
        const text = (yield* petrel("show", "acme/stripe")).out.join("\n")
        assert.match(text, /provider +stripe\n(.*\n)*.*rate +200\/s/)
        assert.match((yield* petrel("list")).out.join("\n"), /acme\/stripe +stripe +2 +200\/s/)
        yield* petrel("set", "acme/stripe", "--no-rate")
        const asked = yield* runWith(
          "sk_live_1",
          ...["source", "set", "acme/stripe", "--reconcile", "1h", "--api-key", "-"],
          ...["--webhook-id", "we_1", "--reconcile-types", "invoice.*, charge.refunded"],
          ...["--alert-above", "5", ...flags]
        )
        assert.strictEqual(asked.code, 0, asked.err.join())
        const set = (yield* petrel("show", "acme/stripe")).out.join("\n")
        assert.match(
          set,
          /webhook id +we_1\n(.*\n)*.*api key +\S+\n(.*\n)*.*reconcile +every 1 h\n/
        )
        assert.match(set, /its types +invoice\.\*, charge\.refunded\n(.*\n)*.*alert above +5/)
        const elsewhere = ["set", "acme/stripe", "--api-url", "https://evil.example"]
        const moved = yield* petrel(...elsewhere)
        assert.match(
          moved.err.join(),
          /--api-key must be given again where --api-url leads to another/
        )
        const same = yield* petrel("set", "acme/stripe", "--api-url", "https://api.stripe.com")
        assert.strictEqual(same.code, 0, same.err.join())
        const both = yield* petrel("set", "acme/stripe", "--no-api-key", "--api-key-file", "x")
        assert.match(both.err.join(), /--api-key and --no-api-key cannot be combined/)
        const needed = yield* petrel("set", "acme/stripe", "--no-api-key")
        assert.match(needed.err.join(), /--api-key is missing/)
        yield* petrel("set", "acme/stripe", "--no-reconcile")
        const bare = yield* petrel(
          ...["set", "acme/stripe", "--no-api-key", "--no-webhook-id", "--no-api-url"],
          ...["--no-reconcile-types", "--no-alert-above"]
        )
        assert.strictEqual(bare.code, 0, bare.err.join())
        const without = parse(nth((yield* petrel("show", "acme/stripe", "--json")).out, 0))
        assert.notInclude(Object.keys(without).join(), "api")
        assert.notInclude(Object.keys(without).join(), "webhookId")
        yield* petrel("remove", "acme/stripe")
        assert.match((yield* petrel("show", "acme/stripe")).err.join(), /there is no source acme/)
        yield* facts.count("source-removed", 1)
        assert.deepStrictEqual(
          facts.facts.map(({ by, kind, source }) => [kind, source?.changed, by === "ana"]),
          [
            ["source-added", ["provider", "secrets"], false],
            ["source-changed", ["rate"], true],
            ["source-changed", ["secrets"], false],
            ["source-changed", ["rate"], false],
            [
              "source-changed",
              ["webhookId", "apiKey", "reconcile", "reconcileTypes", "alertAbove"],
              false
            ],
            ["source-changed", ["apiUrl"], false],
            ["source-changed", ["reconcile"], false],
            [
              "source-changed",
              ["webhookId", "apiKey", "apiUrl", "reconcileTypes", "alertAbove"],
              false
            ],
            ["source-removed", [], false]
          ]
        )
        assert.notMatch(JSON.stringify([set, facts.facts]), /whsec_|sk_live/)
        const readded = yield* petrel("add", "acme/stripe", "--provider", "stripe", "--secret", "x")
        assert.strictEqual(readded.code, 0)
        const { ask, jsm, names } = yield* natsClients
        const stream = `KV_${names.buckets.sources}`
        const { state } = yield* ask("count", () => jsm.streams.info(stream))
        assert.strictEqual(state.messages, 1)
      })
    )
  })

  it.live("says what is wrong", () => {
    const { flags, run: installed } = place()
    const errors = (...args: ReadonlyArray<string>) =>
      Effect.map(run("source", ...args, ...flags), ({ code, err }) => [code, err.join("\n")])
    return installed(
      Effect.gen(function* () {
        const stripe = ["--provider", "stripe"]
        const cases = [
          [["add", "acme/outbox", ...stripe], /must be a tenant and a source/],
          [["add", "acme", ...stripe], /must be a tenant and a source/],
          [
            ["add", "acme/x", "--provider", "stirpe"],
            /must be one of petrel, .* hmac; did you mean stripe\?/
          ],
          [["add", "acme/x", ...stripe], /the secret is missing/],
          [["add", "acme/x", ...stripe, "--secret", "sk_live_1"], /not an API key/],
          [["add", "acme/x", ...stripe, "--secret", "a", "--rate", "fast"], /--rate/],
          [["add", "acme/x", "--provider", "hmac", "--secret", "a"], /--scheme is missing/],
          [["add", "acme/x", "--provider", "hmac", "--secret", "a", "--scheme", "{"], /--scheme/],
          [
            [
              ...["add", "acme/x", "--provider", "hmac", "--secret", "a"],
              ...["--scheme", '{"header":"x-a","type":"type"}']
            ],
            /--scheme must have header:NAME in lower case or body:PATH in its "type"$/m
          ],
          [
            ["add", "acme/x", ...stripe, "--secret", "a", "--reconcile", "1h"],
            /--api-key is missing/
          ],
          [["add", "acme/x", ...stripe, "--secret", "a", "--reconcile", "1s"], /--reconcile/],
          [
            ["add", "acme/x", ...stripe, "--secret", "a", "--webhook-id", "x"],
            /--webhook-id must be/
          ],
          [["add", "acme/x", ...stripe, "--secret", "a", "--alert-above", "x"], /--alert-above/],
          [["add", "acme/x", ...stripe, "--secret", "a", "--api-key", "sk"], /--api-key takes -/],
          [["add", "acme/x", "--provider", "zoom", "--secret", "a", "--reconcile", "1h"], /no API/],
          [["set", "acme/x"], /nothing to change/],
          [["set", "acme/x", "--rate", "1/s"], /there is no source acme\/x/],
          [["rotate", "acme/x"], /give the new secret/],
          [["remove", "acme/x"], /there is no source acme\/x/]
        ] as const
        for (const [args, text] of cases) {
          const [code, said] = yield* errors(...args)
          assert.match(String(said), text, args.join(" "))
          assert.notStrictEqual(code, 0, args.join(" "))
        }
      })
    )
  })
})
