import type { BrokerOptions } from "../broker/connection.ts"
import type {
  AttemptQuery,
  DeliveryLookup,
  DeliveryQuery,
  EventQuery,
  LoggedDeliveries
} from "./delivery-log.ts"
import type { FollowOptions, WriterReport } from "./follow-history.ts"
import type { AttemptRows, EventRows, PageRows } from "./log-reader.ts"
import type { LoggedSums, SumsQuery } from "./log-sums.ts"
import type { LoggedLine } from "./thread-log.ts"

/** What the writer's thread is started with. */
export interface WriterData {
  readonly broker: BrokerOptions
  readonly store: FollowOptions
}

/** `remake`: a file is damaged, so all are made again; `rebuild` keeps what is older than the history. */
export interface ToWriter {
  readonly do: "rebuild" | "remake" | "stop"
}

export type FromWriter =
  | { readonly tells: "report"; readonly report: WriterReport }
  | LoggedLine
  /** Its files are closed. */
  | { readonly tells: "stopped" }

/** What the thread that answers queries is started with. */
export interface QueryData {
  readonly directory: string
}

export type ToQuery = { readonly id: number } & (
  | { readonly ask: "find"; readonly query: DeliveryQuery }
  | { readonly ask: "attempts"; readonly query: AttemptQuery }
  | { readonly ask: "events"; readonly query: EventQuery }
  | { readonly ask: "get"; readonly lookup: DeliveryLookup }
  | { readonly ask: "sums"; readonly query: SumsQuery }
)

export interface FromQuery {
  readonly id: number
  readonly result:
    | { readonly page: PageRows }
    | { readonly attempts: AttemptRows }
    | { readonly events: EventRows }
    | { readonly rounds: Omit<LoggedDeliveries, "lag"> }
    | { readonly sums: LoggedSums }
    | { readonly problem: { readonly field: string; readonly message: string } }
    | { readonly unavailable: string; readonly isBroken: boolean }
}
