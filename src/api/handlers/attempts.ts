import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { resendDelivery } from "../../operations/deliveries/resend-delivery.ts"
import { retryDelivery } from "../../operations/deliveries/retry-delivery.ts"
import { diagnoseEndpoint } from "../../operations/endpoints/diagnosis/diagnose-endpoint.ts"
import { retryEndpointNow } from "../../operations/endpoints/retry-now.ts"
import { testEndpoint } from "../../operations/endpoints/test-endpoint.ts"
import { Caller } from "../access.ts"
import { Api } from "../definition/api.ts"
import { reading } from "../failures.ts"

/** Carries out the routes of attempts that somebody wants now. */
export const attemptsHandlers = HttpApiBuilder.group(Api, "attempts", (handlers) =>
  handlers.handleAll({
    test: ({ params, payload }) =>
      reading(Effect.flatMap(Caller, ({ by }) => testEndpoint(params, payload ?? {}, by))),
    retryNow: ({ params, payload }) =>
      reading(Effect.flatMap(Caller, ({ by }) => retryEndpointNow(params, payload ?? {}, by))),
    diagnose: ({ params }) => reading(diagnoseEndpoint(params)),
    retryDelivery: ({ params: { delivery, tenant }, payload }) =>
      reading(
        Effect.flatMap(Caller, ({ by }) => retryDelivery(delivery, tenant, payload ?? {}, by))
      ),
    resend: ({ params: { delivery, tenant } }) =>
      reading(Effect.flatMap(Caller, ({ by }) => resendDelivery(delivery, tenant, by)))
  })
)
