-- name: select_budget
SELECT cap, reserved, billed, imputed, uncertain FROM budgets WHERE id = :id

-- name: insert_budget
INSERT INTO budgets (id, cap) VALUES (:id, :cap) ON CONFLICT (id) DO NOTHING

-- name: cap_budget
UPDATE budgets SET cap = :cap WHERE id = :id

-- name: reserve
UPDATE budgets SET reserved = reserved + :amount
WHERE id = :id AND (cap IS NULL OR billed + imputed + uncertain + reserved + :amount <= cap)

-- name: book
UPDATE budgets
SET reserved = reserved - :reserved, billed = billed + :billed, imputed = imputed + :imputed,
    uncertain = uncertain + :uncertain
WHERE id = :id

-- name: restore_budget
INSERT INTO budgets (id, cap, billed, imputed, uncertain) VALUES (:id, :cap, :billed, :imputed, :uncertain)

-- name: delete_budget
DELETE FROM budgets WHERE id = :id
