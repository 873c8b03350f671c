import { requireUnlocked } from '../lock.js';
import { freePort } from '../ports.js';
import { say } from '../report.js';
import { EventSigner } from '../security-events/event-signer.js';
import { startCodeHost } from './code-host.js';
import { RISC_CONFIGURATION, startIdentityProvider } from './identity-provider.js';
import { keep, readKept, type KeptAccounts, type StandInPorts } from './kept-accounts.js';
import { startMailbox, type ReceivedMail } from './mailbox.js';

/** The platform's client id at the identity provider. */
export const CLIENT_ID = 'the-platform';

export const issuerOf = ({ ports }: KeptAccounts): string =>
  `http://127.0.0.1:${ports.identityProvider}`;

const USUAL_PORTS: StandInPorts = { mail: 3025, identityProvider: 3026, codeHost: 3027 };

/** Any free ports. */
export const ANY_PORTS: StandInPorts = { mail: 0, identityProvider: 0, codeHost: 0 };

/** Stand-ins for the mail server, the identity provider and the code host. */
export interface StandIns {
  /** Environment of a platform that uses the stand-ins. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/**
 * Starts the stand-ins in this process. They accept any identity without a password.
 *
 * @param platform.dataDir the data folder of the platform at `webUrl`.
 * @param ports ports for the first start; later starts reuse them, or take others if they are in use.
 * @throws StartFailure when a platform runs on the data folder, whose addresses cannot change then.
 */
export async function startStandIns(
  { dataDir, webUrl }: { readonly dataDir: string; readonly webUrl: string },
  ports: StandInPorts = USUAL_PORTS,
): Promise<StandIns> {
  await requireUnlocked(dataDir);
  const kept = readKept(dataDir);
  const wanted = kept?.ports ?? ports;
  const eventKey = kept?.eventKey ?? (await (await EventSigner.create()).exported());
  const { published } = await EventSigner.of(eventKey);
  const mailbox = await startMailbox({ port: await freePort(wanted.mail), onMail: show });
  const provider = await startIdentityProvider(`${webUrl}/api/auth/google/callback`, {
    port: await freePort(wanted.identityProvider),
    eventKeys: [published],
  });
  const codeHost = await startCodeHost({ port: await freePort(wanted.codeHost) });
  keep(dataDir, {
    ports: {
      mail: mailbox.port,
      identityProvider: portOf(provider.issuerUrl),
      codeHost: portOf(codeHost.url),
    },
    eventKey,
  });
  const env = {
    SMTP_URL: mailbox.url,
    IDP_ISSUER_URL: provider.issuerUrl,
    IDP_CLIENT_ID: provider.clientId,
    IDP_CLIENT_SECRET: provider.clientSecret,
    IDP_RISC_CONFIGURATION_URL: `${provider.issuerUrl}${RISC_CONFIGURATION}`,
    CODEHOST_URL: codeHost.url,
    CODEHOST_API_URL: codeHost.url,
    CODEHOST_CLIENT_ID: codeHost.clientId,
    CODEHOST_CLIENT_SECRET: codeHost.clientSecret,
  };
  return {
    env,
    async close() {
      await Promise.all([mailbox.close(), provider.close(), codeHost.close()]);
    },
  };
}

const portOf = (url: string): number => Number(new URL(url).port);

function show({ text, to }: ReceivedMail): void {
  say(`\nMail to ${to}:\n\n${text.trim().replace(/^/gm, '  ')}\n`);
}
