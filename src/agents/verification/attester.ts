import { keccak256, stringToHex, type Hex } from 'viem';
import type { Database } from '../../platform/database/database.js';
import type { Check } from '../../types/verification.js';
import { attest, type AttestationDomain } from './attestation.js';
import { evidenceOf } from './evidence.js';

interface Parts {
  readonly database: Database;
  readonly domain: AttestationDomain;
  /** Undefined if the platform has no key: nothing is signed then. */
  readonly privateKey: Hex | undefined;
}

interface Row {
  readonly agentId: string;
  readonly checks: readonly Check[];
  readonly image: string;
  readonly verified: boolean;
  readonly measuredAt: Date;
  readonly address: Hex | null;
}

/**
 * The signer of attestations, in the only process with the operator's key. Signs only measurements that are
 * stored, named by their row, so that no caller chooses the text.
 */
export class Attester {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Signs a measurement and stores the attestation with it. False without a key, or if it has ended. */
  async sign(id: string): Promise<boolean> {
    const { database, domain, privateKey } = this.#parts;
    if (privateKey === undefined) return false;
    const platform = database.asPlatform();
    const [row] = await platform.query<Row>(
      `SELECT v.agent_id AS "agentId", v.checks, v.image, v.verified,
              v.measured_at AS "measuredAt", w.address
         FROM agent_verifications v
         LEFT JOIN wallets w ON w.agent_id = v.agent_id AND w.user_id = v.user_id
        WHERE v.id = $id AND v.state = 'signing'`,
      { id },
    );
    if (!row) return false;
    const { address, agentId, checks, image, measuredAt, verified: passed } = row;
    const attested = {
      ...{ agentId, image, measuredAt, passed, evidence: evidenceOf(checks) },
      recipient: address ?? undefined,
      salt: keccak256(stringToHex(id)),
    };
    const attestation = await attest(attested, domain, privateKey);
    const stored = await platform.query(
      `UPDATE agent_verifications SET attestation = $attestation::jsonb
        WHERE id = $id AND state = 'signing' AND measured_at = $measuredAt RETURNING id`,
      { id, measuredAt, attestation: JSON.stringify(attestation) },
    );
    return stored.length > 0;
  }
}
