module template_oracle

go 1.24
