import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

const TABLES = `
   CREATE TABLE skills (
     id text PRIMARY KEY,
     user_id text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
     name text NOT NULL,
     -- The version that is listed and installed.
     version integer NOT NULL,
     visibility text NOT NULL CHECK (visibility IN ('private', 'public')),
     uses integer NOT NULL DEFAULT 0,
     created_at timestamptz NOT NULL DEFAULT now(),
     updated_at timestamptz NOT NULL DEFAULT now()
   );
   CREATE UNIQUE INDEX skills_id_user_key ON skills (id, user_id);
   CREATE UNIQUE INDEX skills_user_name_key ON skills (user_id, name);
   CREATE UNIQUE INDEX skills_public_name_key ON skills (name) WHERE visibility = 'public';
   CREATE INDEX skills_user_created ON skills (user_id, created_at, id);
   CREATE INDEX skills_public_created ON skills (created_at, id) WHERE visibility = 'public';

   CREATE TABLE skill_versions (
     skill_id text NOT NULL,
     version integer NOT NULL,
     user_id text NOT NULL,
     description text NOT NULL,
     tags text[] NOT NULL,
     content text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (skill_id, version),
     FOREIGN KEY (skill_id, user_id) REFERENCES skills (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX skill_versions_user ON skill_versions (user_id, skill_id, version);
   CREATE INDEX skill_versions_created ON skill_versions (created_at);

   -- The skills of agents. An installed text is a copy: it stays when its author changes or withdraws the skill.
   CREATE TABLE agent_skills (
     -- The operation that introduces this version, or another unique id for a copy in a clone.
     id text PRIMARY KEY,
     agent_id text NOT NULL,
     user_id text NOT NULL,
     name text NOT NULL,
     skill_id text REFERENCES skills (id) ON DELETE SET NULL,
     -- Version and text are null for a removal.
     version integer,
     content text,
     state text NOT NULL CHECK (state IN ('requested', 'present', 'previous')),
     updated_at timestamptz NOT NULL DEFAULT now(),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
   );
   CREATE INDEX agent_skills_agent ON agent_skills (agent_id);
   CREATE INDEX agent_skills_user ON agent_skills (user_id, id);
   CREATE INDEX agent_skills_skill ON agent_skills (skill_id) WHERE state = 'present';
   CREATE UNIQUE INDEX agent_skills_present_key ON agent_skills (agent_id, name)
     WHERE state = 'present';`;

const FUNCTIONS = `
   -- Skills that the transaction's user may see: the user's own and public ones, newest first. With a name, the
   -- user's own skill comes first. Authors are users whose rows others do not see, so only names leave here.
   CREATE FUNCTION find_skills(of_name text, of_tag text, words text, only_own boolean,
                               before_time timestamptz, before_id text, most integer, whole boolean)
     RETURNS TABLE (id text, name text, description text, author text, own boolean, version integer,
                    tags text[], visibility text, installs integer, uses integer,
                    created_at timestamptz, updated_at timestamptz, content text)
     LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$WITH me AS (SELECT current_setting('app.user_id', true) AS id)
       SELECT s.id, s.name, v.description, u.name, s.user_id = me.id, s.version, v.tags, s.visibility,
              (SELECT count(*)::integer FROM public.agent_skills i
                WHERE i.skill_id = s.id AND i.state = 'present'),
              s.uses, s.created_at, s.updated_at, CASE WHEN whole THEN v.content END
         FROM me, public.skills s
         JOIN public.skill_versions v ON v.skill_id = s.id AND v.version = s.version
         JOIN public.users u ON u.id = s.user_id
        WHERE (s.user_id = me.id OR s.visibility = 'public' AND NOT only_own)
          AND (of_name IS NULL OR s.name = of_name)
          AND (of_tag IS NULL OR of_tag = ANY (v.tags))
          AND (words IS NULL OR strpos(lower(s.name || ' ' || v.description), lower(words)) > 0)
          AND (before_time IS NULL OR (s.created_at, s.id) < (before_time, before_id))
        ORDER BY of_name IS NOT NULL AND s.user_id = me.id DESC, s.created_at DESC, s.id DESC
        LIMIT most$$;

   -- Counts a use of a skill, which may be another user's.
   CREATE FUNCTION count_skill_use(of_skill text) RETURNS void
     LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$UPDATE public.skills SET uses = uses + 1 WHERE id = of_skill AND uses < 2147483647$$;`;

const OWNED = ownedThrough('user_id');

/** Skills that users publish, their versions, and the skills of agents. */
export const migration: Migration = async (context) => {
  await run(context, TABLES);
  const changes = 'UPDATE (version, visibility, updated_at)';
  await protectTable(context, 'skills', `SELECT, INSERT, DELETE, ${changes}`, OWNED);
  await protectTable(context, 'skill_versions', 'SELECT, INSERT, DELETE', OWNED);
  const states = 'UPDATE (state, updated_at)';
  await protectTable(context, 'agent_skills', `SELECT, INSERT, DELETE, ${states}`, OWNED);
  await run(context, FUNCTIONS);
  await grantExecute(context, [
    'find_skills(text, text, text, boolean, timestamptz, text, integer, boolean)',
    'count_skill_use(text)',
  ]);
};
