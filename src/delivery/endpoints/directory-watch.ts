import type { KvWatchEntry } from "@nats-io/kv"
import { Deferred, Effect, Result } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { DirectoryTable } from "./directory-table.ts"
import { decodeEndpoint } from "./endpoint-store.ts"

/**
 * Watches the bucket for as long as the scope lives: the broker sends each change once, and nothing
 * is read for it. After a reconnect everything is read again: a watch can miss what happened
 * meanwhile. Returns when the first reading is complete.
 *
 * @param unavailable told of the keys of endpoints that are disabled, removed or replaced.
 */
export const keepReading = Effect.fnUntraced(function* (
  table: DirectoryTable,
  unavailable: (key: string) => void
) {
  const { ask, bucket, jsm, names, onReconnect } = yield* Broker
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const complete = yield* Deferred.make<void>()
  const name = names.buckets.endpoints

  const apply = (entry: KvWatchEntry): void => {
    const { key, revision } = entry
    if (revision <= table.revisionOf(key)) return
    if (entry.operation !== "PUT") {
      table.remove(key, revision)
      unavailable(key)
      return
    }
    const text = entry.string()
    const decoded = decodeEndpoint(key, text)
    if (Result.isFailure(decoded)) {
      run(Effect.logError(decoded.failure.message))
      table.cannotRead(key)
      return
    }
    const config = decoded.success
    const before = table.generationOf(key)
    table.put(key, config, text, revision)
    const isReplaced = before !== undefined && before !== config.generation
    if (isReplaced || config.disabled !== undefined) unavailable(key)
  }

  const readOnce = Effect.scoped(
    Effect.gen(function* () {
      const kv = yield* bucket(name)
      const info = yield* ask(`look at ${name}`, () => jsm.streams.info(`KV_${name}`))
      const watch = yield* Effect.acquireRelease(
        ask(`watch ${name}`, () => kv.watch()),
        (iterator) => Effect.sync(() => iterator.stop())
      )
      const again = yield* Deferred.make<void>()
      const forget = onReconnect(() => Deferred.doneUnsafe(again, Effect.void))
      yield* Effect.addFinalizer(() => Effect.sync(forget))
      const seen = new Set<string>()
      let reading = true
      const finish = () => {
        reading = false
        for (const key of table.absent(seen)) {
          table.remove(key, info.state.last_seq)
          unavailable(key)
        }
        seen.clear()
        Deferred.doneUnsafe(complete, Effect.void)
      }
      if (info.state.messages === 0) finish()
      // No fiber steps for each entry: of 100,000 they would take longer than all the rest.
      const follow = ask(`watch ${name}`, async () => {
        for await (const entry of watch) {
          apply(entry)
          if (!reading) continue
          seen.add(entry.key)
          if (entry.delta === 0) finish()
        }
      })
      yield* Effect.raceFirst(follow, Deferred.await(again))
    })
  )

  yield* readOnce.pipe(
    Effect.catch((error) =>
      Effect.andThen(
        Effect.logWarning("reading the endpoints failed", { why: error.message }),
        Effect.sleep("1 second")
      )
    ),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Deferred.await(complete)
})
