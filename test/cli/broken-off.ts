import { assert, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect } from "effect"
import type { Broker } from "../../src/broker/broker.ts"
import type { EndpointJson } from "../../src/domain/endpoint.ts"
import type { FactKind } from "../../src/domain/fact.ts"
import type { Facts } from "../../src/history/facts.ts"
import { allFacts } from "../kit/consistency.ts"
import { endpoint, history } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import type { installations } from "./command-line.ts"
import { run } from "./in-process.ts"
import { start } from "./running.ts"

export interface BrokenOff {
  readonly install: ReturnType<typeof installations>
  /** Of the facts that the command appends for each that it sends. */
  readonly kind: FactKind
  /** To whom it sends. */
  readonly endpoint: Pick<EndpointJson, "id"> & Partial<Pick<EndpointJson, "types">>
  readonly command: ReadonlyArray<string>
  /** Makes so many to send, and a worker, before the endpoint is there. */
  readonly prepare: (count: number) => Effect.Effect<unknown, unknown, Broker | Facts | Scope.Scope>
  /** The n-th as the receiver sees it: id and body. */
  readonly nth: (n: number) => string
  /** What it says where it was stopped, after how many of all were sent. */
  readonly said: RegExp
}

/** Tells that a command which was killed or stopped sends all, each once, when it is run again. */
export const sendsAllOnce = ({ command, install, kind, prepare, said, ...of }: BrokenOff) => {
  for (const [signal, code] of [
    ["SIGKILL", 128],
    ["SIGINT", 130]
  ] as const)
    it.live(`sends all, each once, where it is run again after ${signal}`, () => {
      const place = install()
      return place.run(
        Effect.gen(function* () {
          const count = 400
          const hook = yield* receiver()
          const facts = yield* history
          yield* prepare(count)
          yield* endpoint({ types: [">"], ...of.endpoint, url: hook.url })
          const args = [...command, ...place.flags]
          const first = yield* start(...args)
          yield* facts.count(kind, 20)
          yield* first.signal(signal)
          assert.strictEqual(yield* first.ended, code)
          const begun = (yield* allFacts).filter((fact) => fact.kind === kind).length
          assert.isBelow(begun, count)
          if (signal === "SIGINT") {
            const words = first.err.join("\n")
            assert.include(words, `stopped after ${begun} of ${count}: `)
            assert.match(words, said)
          }
          const second = yield* run(...args)
          assert.strictEqual(second.code, 0)
          yield* facts.count("delivered", count)
          const came = hook.requests.map(({ body, headers }) => `${headers["webhook-id"]} ${body}`)
          const wanted = Array.from({ length: count }, (_, n) => of.nth(n))
          assert.deepStrictEqual(came.toSorted(), wanted.toSorted())
          assert.lengthOf(facts.of(kind), count)
        })
      )
    })
}
