import { Effect, Schema } from "effect"
import { Caller } from "../caller.ts"
import { documented, operation, operationGroup, Replied, withStatus } from "../operation.ts"
import { Tenant, tenantPath } from "../parameters.ts"
import { TokenView } from "../token.ts"
import { listTokens } from "./manage-tokens.ts"
import { MadeLink, makePortalLink, NewPortalLink } from "./sessions.ts"

const texts = {
  endpoint: "The endpoint that it is about. (Default: all of the tenant's)",
  name: "A name for people, such as who gets the link.",
  brand: "What its pages are headed with: a name, a colour such as #0b63ce, a logo as a data URL."
}

const path = `${tenantPath}/portal-links` as const
const params = { tenant: Tenant }

const create = operation("create", "POST", path, {
  scope: "tokens:write",
  summary: "Make a link that opens the pages about a tenant or an endpoint, once",
  description:
    "Who opens it sees the log of what is sent there, sends again, and changes endpoints. The link opens one session within an hour; link and session end after `lastsMs`. It is revoked as a token is, by its id.",
  refusals: ["not-found", "conflict"],
  params,
  payload: documented(NewPortalLink, {
    identifier: "NewPortalLink",
    fields: {
      ...texts,
      lastsMs: "How long link and session last, ms, a minute to a day. (Default: an hour)",
      readOnly: "Its pages show, and change nothing. (Default: false)"
    },
    examples: [{ endpoint: "billing", lastsMs: 3_600_000, name: "Ada of ACME" }]
  }),
  output: withStatus(
    documented(MadeLink, {
      identifier: "PortalLink",
      description: "A link that was made.",
      fields: {
        ...texts,
        path: "What follows the console's address. It is shown only once.",
        opensUntil: "Until when it opens a session.",
        expiresAt: "When link and session end."
      }
    }),
    201
  ),
  run: ({ params: { tenant }, payload }) =>
    Effect.flatMap(Caller, (caller) =>
      Effect.map(
        makePortalLink(tenant, payload, caller),
        (made) =>
          new Replied({
            output: made,
            status: 201,
            location: `/v1/tenants/${tenant}/tokens/${made.id}`
          })
      )
    )
})

const list = operation("list", "GET", path, {
  scope: "tokens:write",
  summary: "List links that were not opened, and sessions, without their secrets",
  params,
  output: Schema.Struct({
    links: Schema.Array(TokenView.annotate({ identifier: "LinkOrSession" })).annotateKey({
      description: "The links."
    })
  }).annotate({ identifier: "PortalLinkList" }),
  run: ({ params: { tenant } }) =>
    Effect.map(listTokens(tenant), (all) => ({ links: all.filter(({ use }) => use !== undefined) }))
})

/** Operations on links to the portal. */
export const portalOperations = operationGroup(
  "portalLinks",
  "Links that open the pages about a tenant or one of its endpoints, for the owner.",
  create,
  list
)
