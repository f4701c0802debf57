import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint,
  suspendEndpoint
} from "../../src/endpoints/endpoint-state.ts"
import { getEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { endpoint, eventually, history, worker } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const hook = { tenant: "acme", endpoint: "hook" }

/** Each change of state, what makes it possible, and what its fact says. */
const changes = [
  [disableEndpoint(hook, "broken", "ana"), Effect.void, "endpoint-disabled", "broken", "cli"],
  [
    enableEndpoint(hook, "ana"),
    disableEndpoint(hook, "x", "bo"),
    "endpoint-enabled",
    undefined,
    "cli"
  ],
  [pauseEndpoint(hook, "holiday", "ana"), Effect.void, "endpoint-paused", "holiday", "cli"],
  [
    resumeEndpoint(hook, "ana"),
    pauseEndpoint(hook, "x", "bo"),
    "endpoint-resumed",
    undefined,
    "cli"
  ],
  [suspendEndpoint(hook, "broken", "ana"), Effect.void, "endpoint-suspended", "broken", "ana"]
] as const

describe.concurrent("a change of an endpoint's state whose author dies before it is recorded", () => {
  for (const when of ["runs", "starts later"] as const)
    for (const [changed, before, kind, reason, decided] of changes)
      scenario(`is recorded by a worker that ${when}: ${kind}`, () =>
        Effect.gen(function* () {
          yield* endpoint()
          yield* before
          if (when === "runs") yield* worker({ id: "w1" })
          const facts = yield* history
          const { names } = yield* Broker
          const { revision } = yield* getEndpoint("acme", "hook")
          const dying = yield* alteredBroker(({ publish }) => ({
            publish: (subject, ...rest) =>
              subject.startsWith(`$KV.${names.buckets.endpoints}`)
                ? publish(subject, ...rest)
                : Effect.never
          }))
          const author = yield* Effect.forkChild(Effect.provideService(changed, Broker, dying))
          yield* eventually(getEndpoint("acme", "hook"), (now) => now.revision > revision)
          yield* Fiber.interrupt(author)
          if (when === "starts later") yield* worker({ id: "w1" })
          yield* facts.count(kind, 1)
          yield* eventually(
            Effect.sync(() => facts.changes),
            (all) => all.some(({ change }) => (change?.revision ?? 0) > revision)
          )
          assert.deepStrictEqual(
            facts.of(kind).map(({ by, reason, worker }) => [by, reason, worker]),
            [["ana", reason, decided]]
          )
          assert.deepStrictEqual((yield* audit({})).judgement.problems.list, [])
        })
      )
})
