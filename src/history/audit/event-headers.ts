import type { Msg } from "@nats-io/transport-node"
import { headersOf } from "../../broker/headers.ts"
import type { Names } from "../../domain/names.ts"
import { Repeats, readOrigin } from "../../domain/origin.ts"

/** What stands between a tenant's name and the rest of an id: nothing that may be in a name. */
const separators = ":./"

/** True for an id that begins with the tenant's name and one of `.`, `/` and `:`. */
export const beginsWithTenant = (id: string, tenant: string): boolean =>
  id.startsWith(tenant) && id.length > tenant.length && separators.includes(id[tenant.length] ?? "")

/** What the headers of the events show that is about no single delivery. */
export class EventHeaders {
  readonly #names: Names
  readonly #origins = new Repeats()
  /** Sequences of events that a source brought again. */
  readonly repeated = new Set<number>()
  /**
   * Of each tenant that publishes to the stream that others publish to as well: how many of its events
   * have an id that does not begin with its name. It may be the id of another tenant's event.
   */
  readonly foreignIds = new Map<string, number>()

  constructor(names: Names) {
    this.#names = names
  }

  see(seq: number, message: Msg): void {
    const header = headersOf(message)
    const { eventRoot, ownEvents } = this.#names
    const tenant = message.subject.split(".", 2)[1] ?? ""
    if (!message.subject.startsWith(`${eventRoot}.`)) return
    const origin = readOrigin(header("nats-stream-source"))
    if (origin !== undefined && this.#origins.isRepeat(tenant, origin)) this.repeated.add(seq)
    if (origin !== undefined && origin.stream !== ownEvents) return
    const id = header("nats-msg-id")
    const isForeign = id !== undefined && !beginsWithTenant(id, tenant)
    this.foreignIds.set(tenant, (this.foreignIds.get(tenant) ?? 0) + Number(isForeign))
  }
}
