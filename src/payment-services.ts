import type { Logger } from 'pino';
import type { Database } from './database/database.js';
import type { TableChanges } from './database/row-changes.js';
import { ChainPayments } from './payments/chain-payments.js';
import { configuredChains } from './payments/chains.js';
import { PaymentWatch } from './payments/payment-watch.js';
import { Signers } from './payments/signers.js';
import { SigningKeys, type KeptKeys } from './payments/signing-keys.js';
import { SessionHolds } from './payment-sessions/session-holds.js';
import { SecretBox } from './secrets/secret-box.js';
import type { Settings } from './settings.js';
import { openKey } from './wallets/open-key.js';

interface PaymentFoundation {
  readonly settings: Settings;
  readonly database: Database;
  readonly log: Logger;
}

/** What the activities of payments do. */
export interface PaymentServices {
  readonly signers: Signers;
  readonly watch: PaymentWatch;
  /** Of payments. */
  readonly changes: TableChanges;
  readonly sessionHolds: Pick<SessionHolds, 'request'>;
}

/** What makes payments, in the one process that has the operator's key. */
export function createPaymentServices({
  database,
  log,
  settings,
}: PaymentFoundation): PaymentServices {
  const secrets = new SecretBox(settings.secrets.keys);
  const payments = new ChainPayments(database);
  const changes = database.changesOf('payments');
  const kept: KeptKeys = (address) => openKey(database.asPlatform(), secrets, address);
  return {
    signers: new Signers({
      database,
      chains: configuredChains(settings.chain),
      keys: new SigningKeys(settings.chain.operator, kept),
      log,
    }),
    watch: new PaymentWatch(payments, changes),
    changes,
    sessionHolds: new SessionHolds({
      ...{ database, payments, kept },
      operator: settings.chain.operator?.address,
    }),
  };
}
