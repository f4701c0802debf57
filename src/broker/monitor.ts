import { Context, Effect } from "effect"

/** What a server of the broker says of its own health, on its monitoring port. */
export interface ServerHealth {
  /** The address of its monitoring port. */
  readonly server: string
  /** Undefined where it does not answer. */
  readonly isWell: boolean | undefined
  /** What is wrong, or why nothing is known; "ok". */
  readonly says: string
}

/** How long a server may take to answer, ms. */
const answerWithinMs = 2_000
/** What is read of an answer, characters: it names the streams that are not well. */
const maxSaid = 500

/** The monitoring ports of the broker's servers, such as `http://127.0.0.1:8222`. */
export const Monitors = Context.Reference<ReadonlyArray<string>>("petrel/broker/Monitors", {
  defaultValue: () => []
})

const readOne = (address: string) =>
  Effect.promise(async (signal): Promise<ServerHealth> => {
    // Without a login, if there is one.
    const server = new URL(address).origin
    try {
      const response = await fetch(new URL("/healthz", address), {
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)])
      })
      const text = await response.text()
      if (response.ok) return { server, isWell: true, says: "ok" }
      const [, error = text] = /"error":\s*"([^"]*)"/.exec(text) ?? []
      return { server, isWell: false, says: `${response.status} ${error}`.slice(0, maxSaid) }
    } catch (error) {
      const why = error instanceof Error ? (error.cause ?? error) : error
      return { server, isWell: undefined, says: why instanceof Error ? why.message : String(why) }
    }
  })

/** Asks the servers whose monitoring ports are known for their health, as they see it. */
export const readHealth = Effect.flatMap(Monitors, (servers) =>
  Effect.forEach(servers, readOne, { concurrency: "unbounded" })
)
