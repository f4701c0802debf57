import { Effect } from "effect"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import { Directory } from "../endpoints/directory.ts"
import { AlertBook } from "./alert-book.ts"
import type { EndpointAlertsOptions } from "./endpoint-alerts.ts"
import { runEndpointAlerts } from "./endpoint-alerts.ts"

export type PartitionAlertsOptions = Omit<EndpointAlertsOptions, "book" | "health">

/** What alerts about the endpoints of a partition are made of, and who raises them. */
export const makePartitionAlerts = Effect.fnUntraced(function* (options: PartitionAlertsOptions) {
  const directory = yield* Directory
  const book = new AlertBook(options.thresholds)
  return {
    book,
    /** Counts a delivery that ended without success at a time (ms since the epoch), and what was known of it. */
    onDeadLettered: (delivery: Delivery, progress: Progress, at: number): void => {
      const known = directory.find(endpointKey(delivery.tenant, delivery.endpoint))
      book.onDeadLettered(delivery, progress, at, known?.config.alerts)
    },
    /** Raises and clears alerts for as long as the scope lives. */
    watch: (health: (key: string) => Health | undefined) =>
      runEndpointAlerts({ ...options, book, health })
  }
})

export type PartitionAlerts = Effect.Success<ReturnType<typeof makePartitionAlerts>>
