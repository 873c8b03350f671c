import type { Logger } from 'pino';
import type { Database } from './platform/database/database.js';
import { Attester } from './agents/verification/attester.js';
import { BusSigner } from './bus/bus-signer.js';
import type { TableChanges } from './platform/database/row-changes.js';
import { ChainPayments } from './money/payments/chain-payments.js';
import { configuredChains } from './money/payments/chains.js';
import { PaymentWatch } from './money/payments/payment-watch.js';
import { Signers } from './money/payments/signers.js';
import { SigningKeys, type KeptKeys, type Operator } from './money/payments/signing-keys.js';
import { openingCheck } from './money/sessions/opening-check.js';
import { SessionOpenings, wakeSession } from './money/sessions/session-openings.js';
import { SessionSettlements } from './money/sessions/session-settlements.js';
import { SecretBox } from './platform/secrets/secret-box.js';
import type { Settings } from './settings.js';
import { openKey } from './money/wallets/open-key.js';

interface PaymentFoundation {
  readonly settings: Settings;
  readonly database: Database;
  readonly log: Logger;
}

/** Services of the payment activities. */
export interface PaymentServices {
  readonly signers: Signers;
  readonly watch: PaymentWatch;
  /** Changes of the payments table. */
  readonly changes: TableChanges;
  readonly openings: SessionOpenings;
  readonly settlements: SessionSettlements;
  readonly busSigner: BusSigner;
  readonly attester: Attester;
}

/** Creates the payment services, in the only process that holds the operator's key. */
export function createPaymentServices({
  database,
  log,
  settings,
}: PaymentFoundation): PaymentServices {
  const secrets = new SecretBox(settings.secrets.keys);
  const payments = new ChainPayments(database);
  const changes = database.changesOf('payments');
  const chains = configuredChains(settings.chain);
  const [{ confirmations, node }] = chains;
  const payer: Operator | undefined = settings.chain.operator;
  const operator = payer?.address;
  const kept: KeptKeys = (address) => openKey(database.asPlatform(), secrets, address);
  return {
    signers: new Signers({
      database,
      chains,
      keys: new SigningKeys(payer, kept),
      log,
      onEnded: wakeSession,
      checkOf: openingCheck(database),
    }),
    watch: new PaymentWatch(payments, changes),
    changes,
    openings: new SessionOpenings({ database, payments, node, operator, kept }),
    settlements: new SessionSettlements({
      database,
      payments,
      node,
      confirmations,
      operator,
      settings: settings.paymentSessions,
    }),
    busSigner: new BusSigner({ database, secrets, kept }),
    attester: new Attester({
      database,
      domain: { chainId: settings.chain.chainId, verifyingContract: settings.chain.eas },
      privateKey: payer?.privateKey,
    }),
  };
}
