import { useState } from "preact/hooks"
import type { Quarantined } from "../../src/client/client.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { Choice } from "../filters.tsx"
import { shownTenant } from "../frame.tsx"
import { List } from "../list.tsx"
import { Action, Acts, Answered, Command, count, Marked, State } from "../parts.tsx"
import { address, go, query } from "../router.ts"
import { may, petrel, session } from "../session.ts"
import { Ago } from "../times.tsx"
import { bodyText } from "./delivery-request.tsx"
import { ChooseTenant } from "./tenants.tsx"

const itemPage = (tenant: string, number: number): string =>
  address(["quarantine", tenant, String(number)])

const reasonTexts = {
  unreadable: "Its signature is valid, but it does not have the form that its provider documents.",
  "id-collision": "An event with the same id and other bytes came in before.",
  invalid: "It cannot be stored as an event."
}

/** What came in and is no event. */
export const Quarantine = () => {
  const tenant = shownTenant()
  return tenant === "*" ? (
    <>
      <h1>Quarantine</h1>
      <ChooseTenant page="quarantine" why="Each tenant has a quarantine of its own." />
    </>
  ) : (
    <OfTenant key={tenant} tenant={tenant} />
  )
}

type Chosen = NonNullable<Parameters<typeof petrel.quarantine.discardSeveral>[0]>

/** Buttons that do something with all that are chosen, and the command for it. */
const Several = ({
  again,
  choice,
  flags,
  of
}: {
  readonly again: () => void
  readonly choice: Chosen
  /** What chooses the same on the command line. */
  readonly flags: string
  readonly of: number
}) => {
  const these = of === 1 ? "this one" : `these ${of}`
  const told = (done: number, left: ReadonlyArray<{ readonly problem: string }>): string => {
    again()
    return left.length === 0
      ? `${done} done`
      : `${done} done, ${left.length} ${left.length === 1 ? "stays" : "stay"} here: ${left[0]?.problem.replaceAll("`", "")}`
  }
  return (
    <Acts usual={`petrel quarantine list ${choice.tenant}`}>
      <Action
        command={`petrel quarantine release ${choice.tenant}${flags}`}
        confirm={`Let ${these} be events? They are delivered as any other. What cannot be an event stays here.`}
        asks="Their type (default: what the provider says of each)"
        does={async (type) => {
          const { left, released } = await petrel.quarantine.releaseSeveral({
            ...choice,
            ...(type === "" ? {} : { type })
          })
          return told(released.length, left)
        }}
      >
        Release {these}
      </Action>
      <Action
        command={`petrel quarantine discard ${choice.tenant}${flags}`}
        confirm={`Discard ${these} for good? Their providers do not send them again.`}
        does={async () => {
          const { discarded, left } = await petrel.quarantine.discardSeveral(choice)
          return told(discarded.length, left)
        }}
      >
        Discard {these}
      </Action>
    </Acts>
  )
}

const OfTenant = ({ tenant }: { readonly tenant: string }) => {
  const { reason, source } = query.value
  const [picked, pick] = useState<ReadonlySet<number>>(new Set())
  const asked = useAsked(
    `quarantine ${tenant}`,
    (options) => petrel.quarantine.list({ tenant }, options),
    10_000
  )
  const all = asked.value?.quarantined ?? []
  const shown = all.filter(
    (one) =>
      (source === undefined || one.source === source) &&
      (reason === undefined || one.reason === reason)
  )
  const chosen = shown.filter(({ number }) => picked.has(number)).map(({ number }) => number)
  const filters = (source ? ` --source ${source}` : "") + (reason ? ` --reason ${reason}` : "")
  const isNarrowed = filters !== ""
  // By number: what has come in since the list was read has been seen by nobody.
  const number = chosen.length > 0 ? chosen : shown.map((one) => one.number)
  const flags = chosen.length > 0 ? ` ${chosen.join(" ")}` : filters || " --all"
  const mayAct = may("events:publish")
  const toggle = (number: number) => {
    const next = new Set(picked)
    if (!next.delete(number)) next.add(number)
    pick(next)
  }
  return (
    <>
      <div class="title">
        <h1>Quarantine</h1>
        {shown.length > 0 && mayAct && (
          <Several
            again={asked.again}
            choice={{ tenant, number }}
            flags={flags}
            of={number.length}
          />
        )}
      </div>
      {(all.length > 0 || isNarrowed) && (
        <search class="filters" aria-label="Filters">
          <Choice
            name="source"
            options={[...new Set([...all.map((one) => one.source), ...(source ? [source] : [])])]}
          />
          <Choice name="reason" options={Object.keys(reasonTexts)} />
        </search>
      )}
      <List
        asked={asked}
        items={() => shown}
        keyOf={({ number }) => number}
        empty={
          isNarrowed
            ? "Nothing in quarantine matches these filters."
            : "Nothing is in quarantine: whatever came in and was verified is an event."
        }
        head={
          <>
            {mayAct && (
              <th class="pick">
                <span class="unseen">Selected</span>
              </th>
            )}
            <th>Number</th>
            <th>Source</th>
            <th>Reason</th>
            <th class="hide-s">Problem</th>
            <th class="hide-s">Event</th>
            <th class="n hide-s">Bytes</th>
            <th class="n">When</th>
          </>
        }
        row={(one) => (
          <>
            {mayAct && (
              <td class="pick">
                <input
                  type="checkbox"
                  aria-label={`Select ${one.number}`}
                  checked={picked.has(one.number)}
                  onChange={() => toggle(one.number)}
                />
              </td>
            )}
            <td>
              <a href={itemPage(tenant, one.number)}>{one.number}</a>
            </td>
            <td>
              <a href={address(["sources", tenant, one.source])}>{one.source}</a>
            </td>
            <td>
              <State is="warn" says={one.reason} />
            </td>
            <td class="hide-s grows" title={one.problem.replaceAll("`", "")}>
              <Marked text={one.problem} />
            </td>
            <td class="hide-s mono">{one.event ?? one.type ?? "–"}</td>
            <td class="n hide-s">{count(one.bytes)}</td>
            <td class="n">
              <Ago at={one.at} />
            </td>
          </>
        )}
      />
      {(shown.length === 0 || session.value?.tenant !== "*") && (
        <Command
          text={`petrel quarantine list ${tenant}`}
          request={curlCommand(`/v1/tenants/${tenant}/quarantine`)}
        />
      )}
    </>
  )
}

const bytesOf = (base64: string): Uint8Array =>
  Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))

const Request = ({ of }: { readonly of: Quarantined }) => (
  <div class="card">
    <h2>What came in</h2>
    {of.body !== undefined && (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
      <pre class="sunk" tabIndex={0}>
        {bodyText(bytesOf(of.body))}
      </pre>
    )}
    <details>
      <summary>Headers of the request</summary>
      <dl class="sent">
        {Object.entries(of.headers ?? {}).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code>
            </dd>
          </div>
        ))}
      </dl>
      <p class="small">Without those that authenticate it.</p>
    </details>
  </div>
)

/** One thing in quarantine: see it, and let it be an event or discard it. */
export const QuarantineItem = ({
  number,
  tenant
}: {
  readonly number: number
  readonly tenant: string
}) => {
  const asked = useAsked(`quarantined ${tenant} ${number}`, (options) =>
    petrel.quarantine.get({ tenant, number }, options)
  )
  const back = () => go(address(["quarantine"], { tenant }))
  return (
    <>
      <div class="title">
        <h1>Quarantine {number}</h1>
        {asked.value !== undefined && (
          <>
            <State is="warn" says={asked.value.reason} />
            <Acts usual={`petrel quarantine show ${tenant} ${number}`}>
              {may("events:publish") && (
                <>
                  <Action
                    main
                    command={`petrel quarantine release ${tenant} ${number}`}
                    confirm="Let it be an event? It is delivered as any other, to whoever wants its type."
                    asks="Its type (default: what its provider says)"
                    does={async (type) => {
                      const { events } = await petrel.quarantine.release({
                        ...{ tenant, number },
                        ...(type === "" ? {} : { type })
                      })
                      const [first] = events
                      if (first === undefined) back()
                      else
                        go(
                          address(["deliveries"], {
                            tenant,
                            type: `${asked.value?.source}.${first.type}`
                          })
                        )
                      return "it is an event"
                    }}
                  >
                    Release
                  </Action>
                  <Action
                    command={`petrel quarantine discard ${tenant} ${number}`}
                    confirm="Discard it for good? Its provider was told that it was taken, and does not send it again."
                    does={async () => {
                      await petrel.quarantine.discard({ tenant, number })
                      back()
                      return "it is discarded"
                    }}
                  >
                    Discard
                  </Action>
                </>
              )}
            </Acts>
          </>
        )}
      </div>
      <Answered asked={asked}>
        {(of) => (
          <section class="row">
            <div class="wide">
              <div class="note warn">
                <b aria-hidden="true">▲</b>
                <div>
                  <p>{reasonTexts[of.reason]}</p>
                  <p>
                    <Marked text={of.problem} />
                  </p>
                </div>
              </div>
              <Request of={of} />
            </div>
            <div class="card">
              <h2>About it</h2>
              <dl class="facts">
                <dt>source</dt>
                <dd>
                  <a href={address(["sources", tenant, of.source])}>
                    {tenant}/{of.source}
                  </a>
                </dd>
                <dt>provider</dt>
                <dd>{of.provider}</dd>
                <dt>came</dt>
                <dd>
                  <Ago at={of.at} />
                </dd>
                <dt>event</dt>
                <dd class="mono">{of.event ?? "not readable"}</dd>
                <dt>type</dt>
                <dd class="mono">{of.type ?? "not readable"}</dd>
                <dt>size</dt>
                <dd>
                  {count(of.bytes)} bytes, {of.contentType || "no content type"}
                </dd>
              </dl>
            </div>
          </section>
        )}
      </Answered>
    </>
  )
}
