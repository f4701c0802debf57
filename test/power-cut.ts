import { cpSync, existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect } from "effect"
import { Broker } from "../src/broker/connection.ts"
import type { TestServer } from "./nats-server.ts"

export interface PowerCutOptions {
  /** What its consumers had stored is on the disk, too. (Default: false) */
  readonly keepsConsumers?: boolean
  /** How long it takes until the power is back, ms. (Default: 0) */
  readonly downFor?: number
}

export interface RestartOptions {
  /** ms (Default: 0) */
  readonly downFor?: number
  /** What is done while it is down. (Default: nothing) */
  readonly meanwhile?: () => void
}

/** Kills a broker, starts it again, and waits until the connection to it is there again. */
export const restarted = Effect.fnUntraced(function* (
  server: TestServer,
  { downFor = 0, meanwhile }: RestartOptions = {}
) {
  const { onReconnect } = yield* Broker
  const back = yield* Deferred.make<void>()
  const forget = onReconnect(() => Deferred.doneUnsafe(back, Effect.void))
  yield* Effect.promise(server.kill9)
  meanwhile?.()
  yield* Effect.sleep(downFor)
  yield* Effect.promise(server.restart)
  yield* Deferred.await(back)
  forget()
})

/**
 * Lets the machine of a broker lose its power: what some streams have stored since `remember` was not
 * on the disk.
 */
export const powerCut = (
  server: TestServer,
  streams: ReadonlyArray<string>,
  { downFor = 0, keepsConsumers = false }: PowerCutOptions = {}
) => {
  const places = streams.map((stream) => ({
    directory: join(server.storeDir, "jetstream", "$G", "streams", stream),
    copy: join(server.storeDir, "..", `remembered-${stream}`)
  }))
  const parts = keepsConsumers ? ["msgs"] : ["msgs", "obs"]
  const restart = (meanwhile: () => void) => restarted(server, { downFor, meanwhile })
  return {
    remember: restart(() => {
      for (const { copy, directory } of places) cpSync(directory, copy, { recursive: true })
    }),
    cut: restart(() => {
      for (const { copy, directory } of places)
        for (const part of parts) {
          rmSync(join(directory, part), { recursive: true, force: true })
          if (existsSync(join(copy, part)))
            cpSync(join(copy, part), join(directory, part), { recursive: true })
        }
    })
  }
}
