import { assert, describe, it } from "@effect/vitest"
import { headers as makeHeaders } from "@nats-io/transport-node"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { Broker } from "../../src/broker/connection.ts"
import { installation } from "../engine.ts"
import type { TestServer } from "../nats-server.ts"
import { startServer } from "../nats-server.ts"
import { run } from "./running.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

const at = new Date(2026, 2, 4, 10, 32, 7).getTime()

const bury = (endpoint: string, event: string, reason: string, progress?: object) =>
  Effect.gen(function* () {
    const { ask, js, names } = yield* Broker
    const headers = makeHeaders()
    for (const [name, value] of Object.entries({
      "petrel-event": event,
      "petrel-event-seq": "7",
      "petrel-type": "invoice.paid",
      "petrel-round": "0",
      "petrel-began": String(at),
      "petrel-deadline": String(at + 60_000),
      "petrel-generation": "g",
      "petrel-revision": "3",
      "petrel-reason": reason,
      "petrel-dead-at": String(at + 5_000),
      ...(progress === undefined ? {} : { "petrel-progress": JSON.stringify(progress) })
    }))
      headers.set(name, value)
    yield* ask("bury", () => js.publish(names.subjects.dead("acme", endpoint), "{}", { headers }))
  })

describe("petrel dead list", () => {
  it.live("prints a table with what became of each, or an object a line", () => {
    const installed = installation(server)
    const list = (...args: ReadonlyArray<string>) =>
      run("dead", "list", "--nats", installed.url, "--prefix", installed.prefix, ...args)
    return installed.run(
      Effect.gen(function* () {
        yield* bury("billing", "acme-invoice-42", "attempts", {
          attempts: 16,
          firstAttemptAt: at,
          lastAttemptAt: at + 5_000,
          lastErrorClass: "connection",
          lastError: "connect ECONNREFUSED\u001b[2J"
        })
        yield* bury("crm", "acme-1", "deadline")

        const [table, json, none] = yield* Effect.all(
          [
            list(),
            list("--endpoint", "acme/billing", "--reason", "attempts", "--json"),
            list("--tenant", "globex")
          ],
          { concurrency: 2 }
        )
        assert.deepStrictEqual(table.out, [
          "id  event            endpoint      reason    attempts  first                last                 last answer",
          "1   acme-invoice-42  acme/billing  attempts  16        2026-03-04 10:32:07  2026-03-04 10:32:12  connection: connect ECONNREFUSED [2J",
          "2   acme-1           acme/crm      deadline  0         -                    -"
        ])
        assert.deepStrictEqual(
          json.out.map((line) => JSON.parse(line)),
          [
            {
              id: 1,
              tenant: "acme",
              endpoint: "billing",
              event: "acme-invoice-42",
              eventSeq: 7,
              type: "invoice.paid",
              round: "0",
              reason: "attempts",
              attempts: 16,
              firstAttemptAt: at,
              lastAttemptAt: at + 5_000,
              lastErrorClass: "connection",
              lastError: "connect ECONNREFUSED\u001b[2J",
              deadline: at + 60_000,
              deadAt: at + 5_000
            }
          ]
        )
        assert.deepStrictEqual(none, {
          code: 0,
          out: [],
          err: ["There are no such dead letters."]
        })
      })
    )
  })
})
