import { Effect } from "effect"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import { Directory } from "../endpoints/directory.ts"
import { AlertWindows } from "./alert-windows.ts"
import type { EndpointAlertsOptions } from "./endpoint-alerts.ts"
import { runEndpointAlerts } from "./endpoint-alerts.ts"

type PartitionAlertsOptions = Omit<EndpointAlertsOptions, "windows" | "health">

/** Counts outcomes of one partition and raises the alerts about its endpoints. */
export const makePartitionAlerts = Effect.fnUntraced(function* (options: PartitionAlertsOptions) {
  const directory = yield* Directory
  const windows = new AlertWindows(options.thresholds)
  return {
    windows,
    /** Counts a delivery that was dead-lettered at a time (ms since the epoch). */
    onDeadLettered: (delivery: Delivery, progress: Progress, at: number): void => {
      const known = directory.find(endpointKey(delivery.tenant, delivery.endpoint))
      windows.onDeadLettered(delivery, progress, at, known?.config.alerts)
    },
    /** Raises and clears alerts for as long as the scope lives. */
    watch: (health: (key: string) => Health | undefined) =>
      runEndpointAlerts({ ...options, windows, health })
  }
})

export type PartitionAlerts = Effect.Success<ReturnType<typeof makePartitionAlerts>>
