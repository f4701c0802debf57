import { readFileSync } from "node:fs"
import { extname } from "node:path"
import { Duration, Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { present } from "../../domain/record.ts"
import { jsonOf } from "../../domain/timestamp.ts"
import { isToken } from "../../domain/token.ts"
import { operatorNamed } from "../../operations/caller.ts"
import { readInput } from "../../operations/input.ts"
import {
  isLinkSpan,
  MadeLink,
  makeOperatorLink,
  makePortalLink,
  maxLinkMs,
  minLinkMs,
  NewPortalLink
} from "../../operations/tokens/sessions.ts"
import { LiveTokens } from "../../operations/tokens/token-store.ts"
import { durationText, spanText } from "../../text/quantities.ts"
import { flagProblems } from "../flags/flag-problems.ts"
import { byFlag, durationFlag, isSet, maybe, textFlag } from "../flags/shared.ts"
import { refusal } from "../refused.ts"
import { connectedWithTokens, report } from "../root-command.ts"
import { remark } from "../terminal/stdout.ts"

const encodeLink = jsonOf(MadeLink)

const onThisMachine = "http://127.0.0.1:4280"

const consoleFlag = Flag.String("console").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription(`Where people reach the console (default: ${onThisMachine})`),
  Flag.filter(
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
    () => "must be an address such as https://petrel.example"
  ),
  maybe
)

const secondMs = 1_000

/** Prints a link with the address of the console: what that is for people, only the console knows. */
const show = Effect.fnUntraced(function* (
  console: string | undefined,
  made: MadeLink,
  whom: string
) {
  const url = `${(console ?? onThisMachine).replace(/\/+$/, "")}${made.path}`
  yield* report({ ...(encodeLink(made) as object), url }, url)
  const { createdAt, opensUntil = createdAt } = made
  // Some ms pass between the two.
  const opensFor = secondMs * Math.round((opensUntil - createdAt) / secondMs)
  yield* remark(
    `It logs ${whom} in once, within ${spanText(opensFor)}, and is a secret until then. \`petrel token revoke ${made.id}\` ends it, and the session it has opened.`
  )
  if (console === undefined)
    yield* remark(
      `It leads to a console on this machine: where people reach it at another address, put that in place of ${onThisMachine}, or give it with --console.`
    )
})

const types: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".webp": "image/webp",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".svg": "image/svg+xml"
}

/** Reads an image as a data URL. */
const readLogo = (path: string): Result.Result<string, string> => {
  const type = types[extname(path).toLowerCase()]
  if (type === undefined) return Result.fail("--logo must be a PNG, WebP, JPEG or SVG file")
  return Result.mapError(
    Result.try(() => `data:${type};base64,${readFileSync(path).toString("base64")}`),
    () => `--logo ${path} cannot be read`
  )
}

const link = Command.make(
  "link",
  {
    place: Argument.String("TENANT[/ENDPOINT]").pipe(
      Argument.withDescription("Whose pages it opens"),
      Argument.filterMap(
        (text) => {
          const parts = text.split("/")
          return parts.length <= 2 && parts.every(isToken) ? Option.some(parts) : Option.none()
        },
        () => "must be a tenant such as acme, or an endpoint such as acme/billing"
      )
    ),
    lasts: durationFlag(
      "for",
      "How long link and session last, a minute to a day, such as 8h (default: 1h)"
    ).pipe(maybe),
    readOnly: isSet("read-only", "Its pages show, and change nothing"),
    name: textFlag("name", "TEXT", "A name for people, such as who gets the link"),
    brand: textFlag("brand", "TEXT", "The name at the head of its pages"),
    colour: textFlag("colour", "COLOUR", "The colour of its links and buttons, such as #0b63ce"),
    logo: textFlag("logo", "FILE", "A PNG, WebP, JPEG or SVG image of 24 kB at most"),
    console: consoleFlag,
    by: byFlag
  },
  Effect.fnUntraced(function* ({ brand, by, colour, console, lasts, logo, name, place, readOnly }) {
    if (lasts !== undefined && !isLinkSpan(Duration.toMillis(lasts)))
      return yield* refusal([
        `--for ${durationText(lasts)} must be between ${spanText(minLinkMs)} and ${spanText(maxLinkMs)}`
      ])
    const image = logo === undefined ? undefined : readLogo(logo)
    if (image !== undefined && Result.isFailure(image)) return yield* refusal([image.failure])
    const looks = present({ name: brand, colour, logo: image?.success })
    const [tenant = "", endpoint] = place
    const asked = readInput(NewPortalLink, {
      ...present({ endpoint, name }),
      ...(lasts === undefined ? {} : { lastsMs: Duration.toMillis(lasts) }),
      ...(readOnly ? { readOnly } : {}),
      ...(Object.keys(looks).length === 0 ? {} : { brand: looks })
    })
    const fields = {
      lastsMs: "--for",
      "brand.name": "--brand",
      "brand.colour": "--colour",
      "brand.logo": "--logo"
    }
    if (asked._tag === "Failure") return yield* refusal(flagProblems(asked.failure, fields))
    const made = yield* makePortalLink(tenant, asked.success, operatorNamed(by)).pipe(
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems, fields))),
      Effect.provide(LiveTokens.layer),
      Effect.provide(connectedWithTokens)
    )
    yield* show(console, made, name ?? `someone of ${place.join("/")}`)
  })
).pipe(
  Command.withDescription(
    "Make a link that opens the pages about a tenant or one of its endpoints, once, for the owner"
  ),
  Command.withExamples([
    { command: "petrel portal link acme/billing --for 1h" },
    { command: "petrel portal link acme --name 'Ada of ACME' --console https://petrel.example" }
  ])
)

export const portal = Command.make("portal").pipe(
  Command.withDescription("Pages for owners of endpoints"),
  Command.withSubcommands([link])
)

/** Prints a link that logs an operator in. */
export const login = Command.make(
  "login",
  { console: consoleFlag, by: byFlag },
  Effect.fnUntraced(function* ({ by, console }) {
    const made = yield* makeOperatorLink(by, operatorNamed(by)).pipe(
      Effect.catchTag("Invalid", ({ message }) => refusal([message])),
      Effect.provide(LiveTokens.layer),
      Effect.provide(connectedWithTokens)
    )
    yield* show(console, made, "an operator")
  })
).pipe(
  Command.withDescription("Make a link that logs an operator in to the console's pages, once"),
  Command.withExamples([{ command: "petrel login --console https://petrel.example" }])
)
