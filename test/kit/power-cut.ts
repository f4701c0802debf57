import { cpSync, existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { crashBroker } from "./broker-crash.ts"
import type { TestServer } from "./nats-server.ts"

export interface PowerCutOptions {
  /** The state that its consumers had stored survives, too. (Default: false) */
  readonly keepsConsumers?: boolean
  /** How long the power is off, ms. (Default: 0) */
  readonly downFor?: number
  /** The account that the streams are in. (Default: that of a server without accounts) */
  readonly account?: string
}

/**
 * Simulates a power failure of the broker's machine: what `streams` have stored since `remember`
 * was not yet on the disk.
 */
export const powerCut = (
  server: TestServer,
  streams: ReadonlyArray<string>,
  { account = "$G", downFor = 0, keepsConsumers = false }: PowerCutOptions = {}
) => {
  const places = streams.map((stream) => ({
    directory: join(server.storeDir, "jetstream", account, "streams", stream),
    copy: join(server.storeDir, "..", `remembered-${stream}`)
  }))
  const parts = keepsConsumers ? ["msgs"] : ["msgs", "obs"]
  const restart = (meanwhile: () => void) => crashBroker(server, { downFor, meanwhile })
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
