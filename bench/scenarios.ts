import type { Scenario } from "./scenario.ts"
import { adaptive } from "./scenarios/adaptive.ts"
import { api } from "./scenarios/api.ts"
import { audit } from "./scenarios/audit.ts"
import { backup } from "./scenarios/backup.ts"
import { bodies } from "./scenarios/bodies.ts"
import { catchingUp } from "./scenarios/catching-up.ts"
import { deliveryLog } from "./scenarios/delivery-log.ts"
import { fanOut } from "./scenarios/fan-out.ts"
import { farBehind } from "./scenarios/far-behind.ts"
import { flood } from "./scenarios/flood.ts"
import { growth } from "./scenarios/growth.ts"
import { intake } from "./scenarios/intake.ts"
import { isolation } from "./scenarios/isolation.ts"
import { latency } from "./scenarios/latency.ts"
import { logAsked } from "./scenarios/log-asked.ts"
import { logBeside } from "./scenarios/log-beside.ts"
import { memory } from "./scenarios/memory.ts"
import { outage } from "./scenarios/outage.ts"
import { outbox } from "./scenarios/outbox.ts"
import { recovery } from "./scenarios/recovery.ts"
import { scaleOut } from "./scenarios/scale-out.ts"
import { scaling } from "./scenarios/scaling.ts"
import { tenants } from "./scenarios/tenants.ts"
import { throughput } from "./scenarios/throughput.ts"

/** In the order in which they run. */
export const scenarios: ReadonlyArray<Scenario> = [
  throughput,
  fanOut,
  latency,
  isolation,
  recovery,
  scaleOut,
  scaling,
  bodies,
  growth,
  memory,
  adaptive,
  outage,
  outbox,
  audit,
  backup,
  api,
  intake,
  deliveryLog,
  logBeside,
  logAsked,
  tenants,
  farBehind,
  catchingUp,
  flood
]
