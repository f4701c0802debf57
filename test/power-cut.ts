import { cpSync, existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect } from "effect"
import { Broker } from "../src/broker/connection.ts"
import type { TestServer } from "./nats-server.ts"

export interface PowerCutOptions {
  /** What its consumers had stored is on the disk, too. (Default: false) */
  readonly keepsConsumers?: boolean
}

/**
 * Lets the machine of a broker lose its power: what a stream has stored since `remember` was not on
 * the disk. `meanwhile` runs while the broker is down.
 */
export const powerCut = Effect.fnUntraced(function* (
  server: TestServer,
  stream: string,
  { keepsConsumers = false }: PowerCutOptions = {}
) {
  const { onReconnect } = yield* Broker
  const directory = join(server.storeDir, "jetstream", "$G", "streams", stream)
  const copy = join(server.storeDir, "..", `remembered-${stream}`)
  const parts = keepsConsumers ? ["msgs"] : ["msgs", "obs"]
  const restart = Effect.fnUntraced(function* (meanwhile: () => void) {
    const back = yield* Deferred.make<void>()
    const forget = onReconnect(() => Deferred.doneUnsafe(back, Effect.void))
    yield* Effect.promise(server.kill9)
    meanwhile()
    yield* Effect.promise(server.restart)
    yield* Deferred.await(back)
    forget()
  })
  return {
    remember: restart(() => cpSync(directory, copy, { recursive: true })),
    cut: restart(() => {
      for (const part of parts) {
        rmSync(join(directory, part), { recursive: true, force: true })
        if (existsSync(join(copy, part)))
          cpSync(join(copy, part), join(directory, part), { recursive: true })
      }
    })
  }
})
