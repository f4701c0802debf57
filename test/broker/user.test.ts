import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { readUser } from "../../src/broker/user.ts"
import { startServer } from "../kit/nats-server.ts"
import { quiet } from "../kit/scenario.ts"

const permitted = 'publish: ["$JS.API.INFO"], subscribe: ["_INBOX.>"]'
const cases: ReadonlyArray<
  readonly [what: string, config: string, login: string, user: string | undefined]
> = [
  ["a user", "authorization { users: [{ user: ana, password: p }] }", "ana:p@", "ana"],
  ["no users", "", "", undefined],
  ["a token, which is a secret", "authorization { token: secret }", "secret@", undefined],
  [
    "a user that may not ask",
    `authorization { users: [{ user: ana, password: p, permissions: { ${permitted} } }] }`,
    "ana:p@",
    undefined
  ]
]

describe.concurrent("the user of a connection", () => {
  for (const [what, config, login, user] of cases)
    it.live(`is what the broker says of ${what}`, () =>
      Effect.gen(function* () {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startServer({ config })),
          (server) => Effect.promise(() => server.stop())
        )
        const url = server.url.replace("//", `//${login}`)
        const told = yield* Effect.provide(readUser, connectTo({ url }))
        assert.strictEqual(told, user)
      }).pipe(Effect.scoped, Effect.provide(quiet))
    )
})
