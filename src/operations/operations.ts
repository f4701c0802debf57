import { deadLetterOperations } from "./dead-letters/dead-letter-operations.ts"
import { deliveryOperations } from "./deliveries/delivery-operations.ts"
import { logOperations } from "./deliveries/log-operations.ts"
import { endpointOperations } from "./endpoints/endpoint-operations.ts"
import { jobOperations } from "./jobs/job-operations.ts"
import { retryOperations } from "./jobs/retry-operations.ts"
import { attemptOperations } from "./retries/attempt-operations.ts"
import { quarantineOperations } from "./sources/quarantine-operations.ts"
import { sourceOperations } from "./sources/source-operations.ts"
import { healthOperations, systemOperations } from "./status/system-operations.ts"
import { settingsOperations } from "./tenants/settings-operations.ts"
import { portalOperations } from "./tokens/portal-operations.ts"
import { tokenOperations } from "./tokens/token-operations.ts"

/** What can be asked of Petrel over HTTP and NATS, except publishing (src/api/publishing.ts). */
export const operationGroups = [
  deliveryOperations,
  logOperations,
  attemptOperations,
  deadLetterOperations,
  jobOperations,
  retryOperations,
  endpointOperations,
  sourceOperations,
  quarantineOperations,
  settingsOperations,
  tokenOperations,
  portalOperations,
  systemOperations,
  healthOperations
] as const
