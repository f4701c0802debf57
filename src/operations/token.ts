import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { Effect, Schema } from "effect"
import { Timestamp } from "../domain/timestamp.ts"
import { isToken, Token } from "../domain/token.ts"

/** The tenant of a token that holds for all tenants. */
export const allTenants = "*"

/** What a token may be allowed to do. */
export const scopes = [
  "endpoints:read",
  "endpoints:write",
  "secrets:read",
  "events:publish",
  "deliveries:read",
  "payloads:read",
  "dead:read",
  "dead:write",
  "replay:write",
  "tokens:write",
  "operator"
] as const
export const TokenScope = Schema.Literals(scopes)
export type TokenScope = typeof TokenScope.Type

/** Requests per second that a token may make by default, and at once after a pause. */
export const defaultTokenRate = 1_000

/** The tenant of a token: a tenant, or `*` for all. */
const TokenTenant = Schema.Union([Schema.Literal(allTenants), Token])

const Rate = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))

const TokenName = Schema.String.check(
  Schema.makeFilter((name: string) =>
    /^\P{Cc}{1,100}$/u.test(name) ? undefined : "must be 1 to 100 characters on one line"
  )
)

/** A token to be made. */
export const NewToken = Schema.Struct({
  tenant: TokenTenant.annotateKey({ description: "The name of the tenant." }),
  scopes: Schema.NonEmptyArray(TokenScope).annotateKey({ description: "Its scopes." }),
  name: Schema.optionalKey(TokenName).annotateKey({ description: "A name for people." }),
  rate: Schema.optionalKey(Rate).annotateKey({
    description: "Requests per second. (Default: 1,000)"
  }),
  expiresAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When it expires. (Default: never)"
  })
})
export type NewToken = typeof NewToken.Type

/** Upper bound of a logo, characters of its data URL. */
const maxLogo = 32 * 1024

/** What the pages of a session are headed with instead of Petrel's name. */
export const Brand = Schema.Struct({
  name: Schema.optionalKey(TokenName).annotateKey({
    description: "What stands in place of Petrel's name."
  }),
  colour: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text: string) =>
        /^#[0-9a-fA-F]{6}$/.test(text) ? undefined : "must be a colour such as #0b63ce"
      )
    )
  ).annotateKey({ description: "Of links and buttons: `#0b63ce`." }),
  logo: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text: string) =>
        text.length <= maxLogo &&
        /^data:image\/(?:png|webp|jpeg|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}$/.test(text)
          ? undefined
          : `must be a data URL of a PNG, WebP, JPEG or SVG image, in base64, of ${maxLogo / 1024} KiB at most`
      )
    )
  ).annotateKey({ description: "A data URL of an image." })
})
export type Brand = typeof Brand.Type

/** What makes a token one of a browser. */
const sessionFields = {
  use: Schema.optionalKey(Schema.Literals(["link", "session"])).annotateKey({
    description:
      "`link`: it opens one session in a browser, once, and does nothing else. `session`: it is a browser's, in a cookie. (Default: a program's)"
  }),
  opensUntil: Schema.optionalKey(Timestamp).annotateKey({
    description: "Until when a link opens a session."
  }),
  endpoint: Schema.optionalKey(Token).annotateKey({
    description:
      "The one endpoint of its tenant that it is about: everything else is as if it was not there."
  }),
  brand: Schema.optionalKey(Brand).annotateKey({ description: "What the pages of a portal show." })
}

/** A token to be made, of a program or of a browser. */
export const AnyNewToken = Schema.Struct({ ...NewToken.fields, ...sessionFields })
export type AnyNewToken = typeof AnyNewToken.Type

const shownFields = {
  id: Schema.String.annotateKey({ description: "The id of the token." }),
  ...AnyNewToken.fields,
  createdAt: Timestamp.annotateKey({ description: "When it was made." }),
  by: Schema.String.annotateKey({ description: "Who made it." }),
  parent: Schema.optionalKey(Schema.String).annotateKey({
    description: "The id of the token that it was made with, with which it is revoked."
  })
}

/** A token without its secret. */
export const TokenView = Schema.Struct(shownFields)
export type TokenView = typeof TokenView.Type

/** A token as the bucket holds it, under its id. */
export const TokenRecord = Schema.Struct({
  v: Schema.Literals([1, 2]).annotateKey({
    description:
      "2: of a browser, or about one endpoint. A console that does not know of these would take the token for one of its whole tenant, and knows no 2 either."
  }),
  ...shownFields,
  hash: Schema.String.annotateKey({ description: "SHA-256 of the token, hexadecimal." })
})
export type TokenRecord = typeof TokenRecord.Type

/** A token that was made. It is shown this once. */
export const CreatedToken = Schema.Struct({ ...shownFields, token: Schema.String })
export type CreatedToken = typeof CreatedToken.Type

/** A token that was revoked. */
export const RevokedToken = Schema.Struct({
  ...shownFields,
  with: Schema.Array(Schema.String).annotateKey({
    description: "The ids of the tokens that were made with it, and are revoked with it."
  })
})
export type RevokedToken = typeof RevokedToken.Type

/**
 * True for a token that is not valid any more.
 *
 * @param now ms since the epoch.
 */
export const hasExpired = ({ expiresAt }: Pick<TokenView, "expiresAt">, now: number): boolean =>
  expiresAt !== undefined && expiresAt <= now

const tokenPattern = /^ptl_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/

/** Returns true for a text that can be the id of a token. */
export const isTokenId = (text: string): boolean => /^[0-9a-f]{16}$/.test(text) && isToken(text)

/** Returns the id in a token; undefined for a text that is none. */
export const tokenIdOf = (token: string): string | undefined => tokenPattern.exec(token)?.[1]

const hashOf = (token: string): Buffer => createHash("sha256").update(token).digest()

/** Makes a token: `ptl_<id>_<256 bits>`. @param given its id. (Default: a new one) */
export const generateToken = (given?: string) =>
  Effect.sync(() => {
    const id = given ?? randomBytes(8).toString("hex")
    const token = `ptl_${id}_${randomBytes(32).toString("base64url")}`
    return { id, token, hash: hashOf(token).toString("hex") }
  })

/** Returns true if a token is the one of a record, compared in constant time. */
export const isTokenOf = ({ hash }: Pick<TokenRecord, "hash">, token: string): boolean => {
  const stored = Buffer.from(hash, "hex")
  const given = hashOf(token)
  return stored.length === given.length && timingSafeEqual(stored, given)
}

/** Returns a token without its secret. */
export const tokenView = ({ hash: _, v: __, ...view }: TokenRecord): TokenView => view
