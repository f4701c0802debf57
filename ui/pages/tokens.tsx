import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import type {
  CreatedToken,
  NewPortalLink as LinkRequest,
  PortalLink,
  Token,
  NewToken as TokenRequest
} from "../../src/client/client.ts"
import { plainFlags, quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { valuesOf } from "../fields.ts"
import { focusOn, Lines, Problems, useDraft, useForm } from "../form.tsx"
import { shownTenant } from "../frame.tsx"
import { portalLinkFields, tokenFields } from "../generated/forms.ts"
import { List } from "../list.tsx"
import { Action, Command, Once } from "../parts.tsx"
import { petrel, session } from "../session.ts"
import { Ago } from "../times.tsx"

interface MakingProps {
  readonly again: () => void
  readonly tenant: string
}

/** What the session's own token may give to another one. */
const givenFields = () => {
  const own = session.value?.scopes ?? []
  return tokenFields.map((field) =>
    field.kind.is === "choices"
      ? {
          ...field,
          text: "",
          kind: {
            ...field.kind,
            options: field.kind.options.filter((one) => own.some((s) => s === one))
          }
        }
      : field
  )
}

/** A form that makes something with a secret, which takes its place, and is shown once. */
const Making = ({
  children,
  form: { isBusy, lines, own, submit, wrong },
  another,
  ids,
  made,
  make,
  request,
  says,
  text,
  title
}: {
  /** Shows the form again, without what was made. */
  readonly another: () => void
  readonly children?: ComponentChildren
  readonly form: ReturnType<typeof useForm>
  readonly ids?: string | undefined
  readonly made: ComponentChildren
  readonly make: () => Promise<undefined>
  readonly request: string
  readonly says?: string
  readonly text: string
  readonly title: string
}) => {
  useDraft(made === undefined && Object.keys(own).length > 0)
  return (
    <details class="card">
      <summary>{title}</summary>
      {made === undefined ? (
        <form class="page" onSubmit={submit(make)}>
          {says !== undefined && <p class="small">{says}</p>}
          <Problems texts={wrong.other} />
          {children}
          <Lines {...lines} ids={ids} />
          <div class="acts">
            <button type="submit" class="main" aria-disabled={isBusy}>
              Make it
            </button>
          </div>
          <Command text={text} request={request} />
        </form>
      ) : (
        // A second click on "Make it" finds no form, and the secret stays until somebody is done with it.
        <div class="page">
          <div role="status" tabIndex={-1} ref={focusOn}>
            {made}
          </div>
          <div class="acts">
            <button
              type="button"
              onClick={(event) => {
                if (event.detail <= 1) another()
              }}
            >
              Make another
            </button>
          </div>
        </div>
      )}
    </details>
  )
}

const NewToken = ({ again, tenant }: MakingProps) => {
  const fields = givenFields()
  const form = useForm(fields)
  const [made, setMade] = useState<CreatedToken>()
  const body = valuesOf(fields, form.typed) as unknown as TokenRequest
  const make = async () => {
    setMade((await petrel.tokens.create({ ...body, tenant })) as CreatedToken)
    form.clear()
    again()
    return undefined
  }
  const scopes = (body.scopes ?? []).map((scope) => ` --scope ${scope}`).join("")
  return (
    <Making
      title="New token"
      form={form}
      make={make}
      another={() => setMade(undefined)}
      made={
        made && (
          <>
            <p>Token {made.id} is made.</p>
            <Once secret={made.token} />
          </>
        )
      }
      text={`petrel token create ${tenant === "*" ? "--operator" : tenant}${scopes}${plainFlags({ name: body.name, rate: body.rate })}`}
      request={curlCommand(`/v1/tenants/${tenant}/tokens`, "POST", body)}
    />
  )
}

const lengths = [
  ["1 hour", "1h", 3_600_000],
  ["8 hours", "8h", 28_800_000],
  ["24 hours", "24h", 86_400_000]
] as const

const linkFields = portalLinkFields.filter(({ name }) => name !== "lastsMs")

const NewLink = ({ again, tenant }: MakingProps) => {
  const form = useForm(linkFields)
  const [length, setLength] = useState(0)
  const [made, setMade] = useState<PortalLink>()
  const [, word, lastsMs] = lengths[length] ?? lengths[0]
  const body = { ...valuesOf(linkFields, form.typed), lastsMs } as LinkRequest
  const make = async () => {
    setMade(await petrel.portalLinks.create({ ...body, tenant }))
    again()
    return undefined
  }
  const { brand, endpoint, name, readOnly } = body
  const whose = endpoint === undefined ? tenant : `${tenant}/${endpoint}`
  return (
    <Making
      title="New portal link"
      ids="link-"
      says="Who opens it sees the log of what is sent to the endpoint, or to all of the tenant's, sends again, and changes it, and nothing else. It opens one session."
      form={form}
      make={make}
      another={() => setMade(undefined)}
      made={
        made && (
          <>
            <p>
              Link {made.id} is made; it is to be opened <Ago at={made.opensUntil} />.
            </p>
            <Once secret={`${location.origin}${made.path}`} />
          </>
        )
      }
      text={`petrel portal link ${quoted(whose)}${plainFlags({ for: word, readOnly, name, brand: brand?.name, colour: brand?.colour })}`}
      request={curlCommand(`/v1/tenants/${tenant}/portal-links`, "POST", body)}
    >
      <div class="form">
        <label for="lasts">lasts</label>
        <select
          id="lasts"
          value={String(length)}
          onChange={(event) => setLength(Number(event.currentTarget.value))}
        >
          {lengths.map(([text], at) => (
            <option key={text} value={String(at)}>
              {text}
            </option>
          ))}
        </select>
      </div>
    </Making>
  )
}

const uses = { link: "link, not opened yet", session: "session of a browser" }

const TokenRow = ({ again, of }: { readonly again: () => void; readonly of: Token }) => (
  <>
    <td class="mono">{of.id}</td>
    <td class="breaks">
      {of.use === undefined ? "token" : uses[of.use]}
      {of.id === session.value?.id && " (this one)"}
    </td>
    <td>
      {of.tenant}
      {of.endpoint !== undefined && `/${of.endpoint}`}
    </td>
    <td>{of.name ?? "–"}</td>
    <td class="hide-s" title={of.scopes.join(", ")}>
      {of.scopes.join(", ")}
    </td>
    <td class="n hide-s">
      <Ago at={of.createdAt} />
    </td>
    <td class="n">
      <Ago at={of.expiresAt} />
    </td>
    <td class="n">
      {of.id !== session.value?.id && (
        <Action
          command={`petrel token revoke ${of.id}`}
          confirm={`Revoke ${of.id}${of.name === undefined ? "" : ` (${of.name})`}, and what was made with it? It is refused within a second.`}
          does={async () => {
            await petrel.tokens.revoke({ tenant: of.tenant, token: of.id })
            again()
            return "revoked"
          }}
        >
          Revoke
        </Action>
      )}
    </td>
  </>
)

/** Who may do what: tokens of programs, links and sessions of browsers. */
export const Tokens = () => {
  const tenant = shownTenant()
  const asked = useAsked(
    `tokens ${tenant}`,
    (options) => petrel.tokens.list({ tenant }, options),
    5_000
  )
  return (
    <>
      <h1>Tokens and portal links</h1>
      {tenant === "*" && (
        <p class="small">Those of all tenants. Choose a tenant above for its own, and for links.</p>
      )}
      <NewToken key={`token ${tenant}`} again={asked.again} tenant={tenant} />
      {tenant !== "*" && <NewLink key={`link ${tenant}`} again={asked.again} tenant={tenant} />}
      <List
        asked={asked}
        items={({ tokens }) => tokens.toReversed()}
        // A row whose dialog is open keeps its token when others come before it.
        keyOf={({ id }) => id}
        empty="There is none yet. A program needs one to ask the API."
        head={
          <>
            <th>Id</th>
            <th>What</th>
            <th>Whose</th>
            <th>For</th>
            <th class="hide-s">Scopes</th>
            <th class="n hide-s">Made</th>
            <th class="n">Expires</th>
            <th class="n">
              <span class="unseen">Revoke</span>
            </th>
          </>
        }
        row={(one) => <TokenRow again={asked.again} of={one} />}
      />
      <Command
        text={`petrel token list${tenant === "*" ? "" : ` ${tenant}`}`}
        request={curlCommand(`/v1/tenants/${tenant}/tokens`)}
      />
    </>
  )
}
