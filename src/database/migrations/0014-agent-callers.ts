import { grantExecute, run, type Migration } from './migration.js';

/** Finds who calls by an agent's AI token, and all that its calls are judged by. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `-- Whose a token is, is asked before any user is known: this looks behind the policies, at
       -- these tokens alone.
       CREATE FUNCTION find_agent_callers(hashes text[])
         RETURNS TABLE (hash text, agent_id text, model text, ai_provider text, own_model text,
                        user_id text, email text, is_admin boolean, plan text,
                        subscription_active boolean)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$SELECT t.lookup_hash, a.id, a.model, a.ai_provider,
                  CASE WHEN jsonb_typeof(a.config -> 'model') = 'string'
                       THEN a.config ->> 'model' END,
                  u.id, u.email, u.is_admin, s.plan,
                  s.status = 'active' AND (s.period_end IS NULL OR s.period_end > now())
             FROM public.agent_secrets t
             JOIN public.agents a ON a.id = t.agent_id AND a.desired <> 'deleted'
             JOIN public.users u ON u.id = a.user_id
             LEFT JOIN public.subscriptions s ON s.user_id = u.id
            WHERE t.lookup_hash = ANY (hashes) AND t.kind = 'ai-token'$$;`,
    );
    await grantExecute(context, 'find_agent_callers(text[])');
  },

  async down(context) {
    await run(context, 'DROP FUNCTION find_agent_callers(text[]);');
  },
};
