import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { memoryStore, petrel, receiver, stripe } from "../../src/receiver/index.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { whsec } from "../providers/sample.ts"

const secret = whsec(7).signing

describe("the receiver's kit in a storm of petrel receive", () => {
  it.live("takes each event once, and nothing else", () =>
    Effect.gen(function* () {
      const effects = new Map<string, number>()
      const hooks = receiver({
        store: memoryStore(),
        sources: {
          petrel: petrel({ secrets: [secret] }),
          stripe: stripe({ secrets: ["whsec_x"] })
        },
        log: () => undefined
      })
      hooks.once("*", (_tx: undefined, { id = "none" }) => {
        effects.set(id, (effects.get(id) ?? 0) + 1)
      })
      const [ofPetrel, ofStripe] = [hooks.node("petrel"), hooks.node("stripe")]
      const server = createServer((request, response) =>
        (request.url === "/stripe" ? ofStripe : ofPetrel)(request, response)
      )
      yield* Effect.addFinalizer(() =>
        Effect.promise(async () => {
          server.close()
          server.closeAllConnections()
          await hooks.stop()
        })
      )
      const url = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            server.listen(0, "127.0.0.1", () => {
              const address = server.address()
              resolve(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`)
            })
          })
      )
      const flags = ["--json", "--count", "100", "--huge", "4"]
      const storms = [
        ["/petrel", "--seed", "1", "--secret", secret],
        ["/stripe", "--seed", "2", "--provider", "stripe", "--secret", "whsec_x"]
      ]
      for (const [path = "", ...others] of storms) {
        const { code, out } = yield* run("receive", "--storm", url + path, ...flags, ...others)
        const report = parse(out[0] ?? "{}")
        assert.deepInclude(report, { faults: [], taken: 100, isCutShort: false })
        assert.strictEqual(code, 0)
      }
      const ids = [1, 2].flatMap((seed) =>
        Array.from({ length: 100 }, (_, number) => `storm-${seed}-${number}`)
      )
      assert.sameMembers([...effects.keys()], ids)
      assert.deepStrictEqual(new Set(effects.values()), new Set([1]))
    }).pipe(Effect.scoped)
  )
})
