import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { runShop, shopLimitMs } from "./shop.ts"

describe.skipIf(withoutPostgres !== undefined)("the shop on PostgreSQL", () => {
  it.live(
    "ships one parcel although it dies twice",
    () =>
      Effect.gen(function* () {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startPostgres()),
          ({ stop }) => Effect.promise(stop)
        )
        yield* runShop("--postgres", yield* Effect.promise(() => server.database("shop")))
      }),
    shopLimitMs
  )
})
